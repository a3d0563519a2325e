// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/decisions.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::quorum {

void count_create(vote_count& counted, const create_outcome& outcome)
{
    switch (outcome.status) {
    case create_status::granted:
        ++counted.yes;
        return;
    case create_status::failed:
        counted.add_failure(outcome.error);
        return;
    case create_status::busy:
        ++counted.no;
        break;
    }
    const bool earlier = counted.retry_after == counted.retry_after.zero() || outcome.retry_after < counted.retry_after;
    if (outcome.retry_after > outcome.retry_after.zero() && earlier)
        counted.retry_after = outcome.retry_after;
    if (!outcome.holder.empty()) {
        counted.holder = outcome.holder;
        counted.holder_host = outcome.holder_host;
    }
}

std::optional<create_outcome> decide_create(const vote_count& so_far)
{
    switch (judge_create(so_far)) {
    case verdict::yes:
        return create_outcome::granted(0);
    case verdict::no:
        return create_outcome::busy(so_far.retry_after, so_far.holder, so_far.holder_host);
    case verdict::failed:
        return create_outcome::failed(so_far.failure());
    case verdict::open:
        break;
    }
    return std::nullopt;
}

std::optional<create_outcome> decide_adopt(const vote_count& so_far)
{
    switch (judge_held(so_far)) {
    case verdict::yes:
        return create_outcome::granted(0);
    case verdict::no:
        return create_outcome::busy();
    case verdict::failed:
        break;
    case verdict::open:
        return std::nullopt;
    }
    if (so_far.missing() > 0)
        return std::nullopt;
    auto why = so_far.failure();
    // Some nodes may have adopted their parts, or may do so later. They count when the adoption is tried again.
    if (why->code == errc::unavailable && so_far.no + so_far.unavailable < so_far.nodes)
        why = make_failure(errc::outcome_unknown, why->detail, why->cause);
    return create_outcome::failed(std::move(why));
}

void count_extend(vote_count& counted, const extension& answer)
{
    switch (answer.outcome.status) {
    case extend_status::extended:
        ++counted.yes;
        counted.late_ttl = std::min(counted.late_ttl, answer.late_ttl);
        return;
    case extend_status::not_held:
        ++counted.no;
        return;
    case extend_status::failed:
        counted.add_failure(answer.outcome.error);
        return;
    }
}

std::optional<extension> decide_extend(const vote_count& so_far)
{
    switch (judge_held(so_far)) {
    case verdict::yes:
        return extension{{extend_status::extended, nullptr}, so_far.late_ttl};
    case verdict::no:
        return extension{{extend_status::not_held, nullptr}, so_far.late_ttl};
    case verdict::failed:
        return extension{{extend_status::failed, so_far.failure()}, so_far.late_ttl};
    case verdict::open:
        break;
    }
    return std::nullopt;
}

void count_valid(vote_count& counted, const valid_outcome& outcome)
{
    if (outcome.error)
        counted.add_failure(outcome.error);
    else
        ++(outcome.valid ? counted.yes : counted.no);
}

std::optional<valid_outcome> decide_valid(const vote_count& so_far)
{
    switch (judge_held(so_far)) {
    case verdict::yes:
        return valid_outcome{true, nullptr};
    case verdict::no:
        return valid_outcome{false, nullptr};
    case verdict::failed:
        return valid_outcome{false, so_far.failure()};
    case verdict::open:
        break;
    }
    return std::nullopt;
}

void count_release(vote_count& counted, const release_outcome& outcome)
{
    if (outcome.status == release_status::failed)
        counted.add_failure(outcome.error);
    else
        ++(outcome.status == release_status::released ? counted.yes : counted.no);
}

std::optional<release_outcome> decide_release(const vote_count& so_far)
{
    switch (judge_release(so_far)) {
    case verdict::yes:
        return release_outcome{release_status::released, nullptr};
    case verdict::no:
        return release_outcome{release_status::not_held, nullptr};
    case verdict::failed:
        return release_outcome{release_status::failed, so_far.failure()};
    case verdict::open:
        break;
    }
    return std::nullopt;
}

} // namespace colock::inline v0::quorum
