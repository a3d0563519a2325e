// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/epochs.hpp"

#include <utility>

namespace colock::remote {

namespace {

/// A server that lets nobody close a connection must not make us remember all of them.
constexpr std::size_t most_unproven = 1024;

} // namespace

void epochs::lost(epoch number, identity known)
{
    unproven_.try_emplace(number, unproven{std::move(known)});
    if (unproven_.size() <= most_unproven)
        return;
    forgotten_ = unproven_.begin()->first;
    unproven_.erase(unproven_.begin());
}

bool epochs::settled(epoch number) const noexcept
{
    return number > forgotten_ && !unproven_.contains(number);
}

std::vector<epochs::suspect> epochs::to_close(std::string_view process)
{
    std::erase_if(unproven_, [process](const auto& each) {
        const auto& other = each.second.known.process;
        return !process.empty() && !other.empty() && other != process;
    });
    std::vector<suspect> found;
    for (const auto& [number, each] : unproven_) {
        if (!each.refused)
            found.push_back({number, each.known.id});
    }
    return found;
}

void epochs::refused(epoch number)
{
    if (const auto found = unproven_.find(number); found != unproven_.end())
        found->second.refused = true;
}

void epochs::inherit(epoch last) noexcept
{
    unproven_.clear();
    inherited_ = last;
}

bool doubts::disproved_by(epoch answered, const epochs& known)
{
    return std::erase_if(unanswered_, [&](epoch each) { return each == answered || known.settled(each); }) > 0 &&
           unanswered_.empty();
}

} // namespace colock::remote
