// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/list_merger.hpp"

#include <utility>

namespace colock::inline v0::quorum {

namespace {

/// The parts are separated by NULs, because none of them contains a NUL.
std::string description_of(const lock_status& answer)
{
    std::string all;
    for (const auto* part : {&answer.key, &answer.owner, &answer.host, &answer.comment, &answer.group})
        (all += *part) += '\0';
    return all;
}

} // namespace

void list_merger::count_holder(lock_status&& status)
{
    auto& holder = known_[description_of(status)];
    if (holder.counted_in_answer == answer_count_)
        return;
    holder.counted_in_answer = answer_count_;
    if (++holder.nodes == 1)
        holder.status = std::move(status);
    else if (status.remaining && (!holder.status.remaining || status.remaining < holder.status.remaining))
        holder.status.remaining = status.remaining;
}

void list_merger::add(list_outcome answer)
{
    ++answer_count_;
    if (answer.error)
        error_ = answer.error;
    else
        ++answered_;
    for (auto& status : answer.locks)
        count_holder(std::move(status));
}

list_outcome list_merger::result() &&
{
    list_outcome result;
    if (answered_ < needed_)
        result.error = error_;
    for (auto& [description, one] : known_) {
        if (!result.error && one.nodes >= needed_)
            result.locks.push_back(std::move(one.status));
    }
    return result;
}

} // namespace colock::inline v0::quorum
