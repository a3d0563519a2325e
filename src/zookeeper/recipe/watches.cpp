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

void watches::wake(remote::wait_sources::completions ended)
{
    const bool is_waking = !ended_waits_.empty();
    std::ranges::move(ended, std::back_inserter(ended_waits_));
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

bool watches::set_some(requests& by, remote::connection_number session)
{
    forget_unused();
    const auto asked = sources_.take_unrequested(max_per_handler);
    for (const auto& each : asked) {
        auto done = [self = owner_.keep(*this), each, session](
                        const reply& answer) { self->on_reply(each, session, answer); };
        if (is_of_children(each->name))
            by.children_and_watch(each->name.substr(0, each->name.size() - 1), std::move(done));
        else
            by.read_and_watch(each->name, std::move(done));
    }
    return asked.size() == max_per_handler;
}

void watches::on_reply(
    const remote::wait_sources::source_ptr& which, remote::connection_number session, const reply& answer)
{
    // A request that was cut off is sent again in the next round. If the request was refused, or the node does not
    // exist, something may have changed, so the waiters check again.
    if (answer.what >= status::unsent)
        return;
    // A folder that does not exist is not watched, but may be created at any time. A node that is gone never comes
    // back.
    if (answer.what == status::no_node && is_of_children(which->name))
        wake(sources_.deactivate_and_wake({which->name}));
    else if (answer.ok() && is_of_children(which->name))
        folder_listed(which, session, answer);
    // The node exists, as its waiters have already seen.
    else if (answer.ok())
        wake(sources_.activate_unchanged(which, session));
    else
        wake(sources_.activate({which}));
}

void watches::folder_listed(
    const remote::wait_sources::source_ptr& which, remote::connection_number session, const reply& answer)
{
    const auto front = answer.queue(layout_).front();
    std::unordered_map<std::string_view, std::size_t> places;
    places.reserve(front.size());
    for (const auto name : front)
        places.emplace(name.substr(0, 2 * token::size), places.size());
    // A claim that is not at the front has lost its node, or waits behind an exclusive one.
    const auto concerns = [&](const claim& who) {
        const auto place = places.find(who.token().hex());
        return place == places.end() || place->second < who.max_holders();
    };
    wake(sources_.activate_for(which, session, static_cast<std::uint64_t>(answer.stat.children_modified_in), concerns));
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
