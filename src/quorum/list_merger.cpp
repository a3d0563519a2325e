// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/list_merger.hpp"

#include <utility>

namespace colock::quorum {

namespace {

/// No part holds a NUL.
std::string description_of(const lock_status& told)
{
    std::string all;
    for (const auto* part : {&told.key, &told.owner, &told.host, &told.comment, &told.group})
        (all += *part) += '\0';
    return all;
}

} // namespace

void list_merger::note(lock_status&& each)
{
    auto& known = known_[description_of(each)];
    if (known.counted_in == told_)
        return;
    known.counted_in = told_;
    if (++known.nodes == 1)
        known.status = std::move(each);
    else if (each.remaining && (!known.status.remaining || each.remaining < known.status.remaining))
        known.status.remaining = each.remaining;
}

void list_merger::add(list_outcome told)
{
    {
        const std::lock_guard guard(mutex_);
        ++told_;
        if (told.error)
            why_ = told.error;
        else
            ++answered_;
        for (auto& each : told.locks)
            note(std::move(each));
        if (--missing_ > 0)
            return;
    }
    list_outcome result;
    if (answered_ < needed_)
        result.error = why_;
    for (auto& [description, one] : known_) {
        if (!result.error && one.nodes >= needed_)
            result.locks.push_back(std::move(one.status));
    }
    done_(std::move(result));
}

} // namespace colock::quorum
