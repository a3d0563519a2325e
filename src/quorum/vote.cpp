// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/vote.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::quorum {

void vote_count::add(create_outcome outcome)
{
    tally::add(outcome.status == create_status::granted, outcome.status == create_status::failed, outcome.error);
    if (outcome.status != create_status::busy)
        return;
    if (outcome.retry_after > outcome.retry_after.zero() &&
        (retry_after == retry_after.zero() || outcome.retry_after < retry_after))
        retry_after = outcome.retry_after;
    if (!outcome.holder.empty()) {
        holder = std::move(outcome.holder);
        holder_host = std::move(outcome.holder_host);
    }
}

void vote_count::add(const extend_answer& answer)
{
    const auto status = answer.outcome.status;
    tally::add(status == extend_status::extended, status == extend_status::failed, answer.outcome.error);
    if (status == extend_status::extended)
        late_ttl = std::min(late_ttl, answer.late_ttl);
}

void vote_count::add(const valid_outcome& outcome)
{
    tally::add(outcome.valid, outcome.error != nullptr, outcome.error);
}

void vote_count::add(const release_outcome& outcome)
{
    tally::add(outcome.status == release_status::released, outcome.status == release_status::failed, outcome.error);
}

} // namespace colock::inline v0::quorum
