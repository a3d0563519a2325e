// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/watches.hpp"

#include "remote/policy/deadlines.hpp"

#include <colock/token.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

using remote::max_per_handler;

void watches::wake(remote::wait_sources::completions completions)
{
    const bool is_waking = !ended_waits_.empty();
    std::ranges::move(completions, std::back_inserter(ended_waits_));
    if (!is_waking)
        wake_some();
}

void watches::wake_some()
{
    for (std::size_t left = max_per_handler; left > 0 && !ended_waits_.empty(); --left) {
        // The wait stays in the list until it is completed, so that waits which end meanwhile are completed after it.
        std::exchange(ended_waits_.front(), {})(wait_outcome{});
        ended_waits_.pop_front();
    }
    if (!ended_waits_.empty())
        asio::post(strand_, [self = owner_.keep(*this)] { self->wake_some(); });
}

bool watches::set_some(requests& sender, remote::connection_number session)
{
    forget_unused();
    const auto sources = sources_.take_unrequested(max_per_handler);
    for (const auto& each : sources) {
        auto done = [self = owner_.keep(*this), each, session](
                        const reply& reply) { self->on_reply(each, session, reply); };
        if (is_of_children(each->name))
            sender.children_and_watch(each->name.substr(0, each->name.size() - 1), std::move(done));
        else
            sender.read_and_watch(each->name, std::move(done));
    }
    return sources.size() == max_per_handler;
}

void watches::on_reply(
    const remote::wait_sources::source_ptr& source, remote::connection_number session, const reply& reply)
{
    // A request that was cut off is sent again in the next round. If the request was refused, or the node does not
    // exist, something may have changed, so the waiters check again.
    if (reply.outcome >= status::unsent)
        return;
    // A folder that does not exist is not watched, but may be created at any time. A node that is gone never comes
    // back.
    if (reply.outcome == status::no_node && is_of_children(source->name))
        wake(sources_.deactivate_and_wake({source->name}));
    else if (reply.ok() && is_of_children(source->name))
        folder_listed(source, session, reply);
    // The node exists, as its waiters have already seen.
    else if (reply.ok())
        wake(sources_.activate_unchanged(source, session));
    else
        wake(sources_.activate({source}));
}

void watches::folder_listed(
    const remote::wait_sources::source_ptr& source, remote::connection_number session, const reply& reply)
{
    const auto front = reply.queue(layout_).front();
    std::unordered_map<std::string_view, std::size_t> places;
    places.reserve(front.size());
    for (const auto name : front)
        places.emplace(name.substr(0, 2 * token::size), places.size());
    // A claim that is not at the front has lost its node, or waits behind an exclusive one.
    const auto concerns = [&](const claim& claim) {
        const auto place = places.find(claim.token().hex());
        return place == places.end() || place->second < claim.max_holders();
    };
    wake(sources_.activate_for(source, session, static_cast<std::uint64_t>(reply.stat.children_modified_in), concerns));
}

bool watches::changed(std::string_view path)
{
    if (path.empty()) {
        sources_.begin_round();
        owner_.arm_timer();
        return false;
    }
    wake(sources_.deactivate_and_wake({of_node(std::string(path))}));
    return sources_.deactivate(of_children(std::string(path)));
}

void watches::forget_unused()
{
    static_cast<void>(sources_.forget_unused(lease_clock::now(), lease_clock::duration::zero(), max_per_handler));
}

} // namespace colock::inline v0::zookeeper::detail
