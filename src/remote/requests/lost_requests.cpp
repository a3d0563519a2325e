// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/lost_requests.hpp"

#include <utility>

namespace colock::remote {

namespace {

/// Limits the memory use if the server permits no client to close connections.
constexpr std::size_t max_unproven = 1024;

} // namespace

void lost_requests::add(connection_number ended, identity known)
{
    unproven_.try_emplace(ended, unproven{std::move(known)});
    if (unproven_.size() <= max_unproven)
        return;
    forgotten_ = unproven_.begin()->first;
    unproven_.erase(unproven_.begin());
}

bool lost_requests::may_arrive(connection_number sent_on) const noexcept
{
    return sent_on <= forgotten_ || unproven_.contains(sent_on);
}

void lost_requests::connected_to(std::string_view process)
{
    std::erase_if(unproven_, [process](const auto& each) {
        const auto& other = each.second.known.process;
        return !process.empty() && !other.empty() && other != process;
    });
}

std::vector<lost_requests::suspect> lost_requests::to_close() const
{
    std::vector<suspect> found;
    for (const auto& [number, each] : unproven_) {
        if (!each.refused)
            found.push_back({number, each.known.id});
    }
    return found;
}

void lost_requests::not_to_be_closed(connection_number refused)
{
    if (const auto found = unproven_.find(refused); found != unproven_.end())
        found->second.refused = true;
}

void lost_requests::inherit(connection_number last) noexcept
{
    unproven_.clear();
    inherited_ = last;
}

bool doubts::dispel(connection_number answered, const lost_requests& known)
{
    return std::erase_if(
               unanswered_, [&](connection_number each) { return each == answered || !known.may_arrive(each); }) > 0 &&
           unanswered_.empty();
}

} // namespace colock::remote
