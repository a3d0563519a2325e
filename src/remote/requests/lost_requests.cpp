// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/lost_requests.hpp"

#include <utility>

namespace colock::inline v0::remote {

namespace {

/// Limits the memory use if the server permits no client to close connections.
constexpr std::size_t max_lost_connections = 1024;

} // namespace

void lost_requests::add(connection_number number, identity server_identity)
{
    lost_.try_emplace(number, lost_connection{std::move(server_identity)});
    if (lost_.size() <= max_lost_connections)
        return;
    forgotten_ = lost_.begin()->first;
    lost_.erase(lost_.begin());
}

bool lost_requests::may_arrive(connection_number sent_on) const noexcept
{
    return sent_on <= forgotten_ || sent_on > before_first_ + numbers_per_server || lost_.contains(sent_on);
}

void lost_requests::on_connected_to(std::string_view process)
{
    std::erase_if(lost_, [process](const auto& each) {
        const auto& other = each.second.server_identity.process;
        return !process.empty() && !other.empty() && other != process;
    });
}

std::vector<lost_requests::connection_to_close> lost_requests::connections_to_close() const
{
    std::vector<connection_to_close> found;
    for (const auto& [number, each] : lost_) {
        if (!each.refused)
            found.push_back({number, each.server_identity.id});
    }
    return found;
}

void lost_requests::on_close_refused(connection_number number)
{
    if (const auto found = lost_.find(number); found != lost_.end())
        found->second.refused = true;
}

bool unsettled_requests::settle(connection_number answered_on, const lost_requests& lost)
{
    return std::erase_if(unanswered_,
               [&](connection_number each) { return each == answered_on || !lost.may_arrive(each); }) > 0 &&
           unanswered_.empty();
}

} // namespace colock::inline v0::remote
