// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/execution.hpp"

namespace colock::simulation {

void execution::check_error(const call& ended, const error_code& code)
{
    const bool is_closed = ended.state->is_closed;
    bool expected = false;
    if (code == asio::error::operation_aborted)
        expected = ended.cancelled_at.has_value();
    else if (code == errc::shutting_down)
        expected = is_closed;
    else if (code == errc::retry_exhausted)
        expected = ended.is_finite;
    else if (code == errc::unavailable || code == errc::outcome_unknown)
        // Without a server: a process that is blocked makes no attempt in time, or a lease of a group has ended.
        expected = (setting_.kind != backend_kind::memory || setting_.observer_is_slow || ended.is_group) &&
                   (ended.is_finite || !ended.acquires);
    else if (code == errc::not_held)
        expected = !ended.acquires;
    else if (code == errc::lost)
        expected = ended.runs_body;
    else if (code == errc::unsupported || code == errc::invalid_ttl || code == errc::invalid_options)
        expected = !ended.acquires;
    if (!expected)
        world_.violate(std::string(ended.name) + " ended with an unexpected error: " + code.message());
}

void execution::check_exclusion(const tracked_lock& received)
{
    const auto is_held = [&](const tracked_lock& each) {
        world_.show_clock_of(*each.on);
        return each.handle->held() && !each.is_exempt &&
               (stores_.size() != 1 || !stores_.front()->taken_at(each.token));
    };
    if (is_held(received)) {
        std::size_t shared = 1;
        for (const auto& each : tracked_) {
            const auto other = each.lock();
            if (!other || other->key != received.key || other->token == received.token || !is_held(*other))
                continue;
            const bool both_shared = other->mode == lock_mode::shared && received.mode == lock_mode::shared;
            // A limit counts the holders that were granted earlier.
            const bool counts = received.max_holders > 0 && other->fence < received.fence;
            if (!both_shared || (counts && ++shared > received.max_holders))
                world_.violate("two holders of " + received.key);
        }
        auto& greatest = greatest_fence_[received.key];
        if (setting_.can.fence && received.mode == lock_mode::exclusive && received.fence <= greatest)
            world_.violate("a fence of " + received.key + " does not grow");
        greatest = std::max(greatest, received.fence);
    }
    if (auto* const current = world_.current())
        world_.show_clock_of(*current);
}

/// The callers of one locker are served in the order of their calls. A group waits for its first key in this order,
/// after an attempt to acquire all keys in one step.
void execution::check_order(const call& granted)
{
    constexpr unsigned max_overtaken = 12;
    // A link that fails may cost a claim its place in the queue of the backend.
    if (setting_.can.fifo && setting_.has_faults && world_.true_time() < calm_begins + settling_time)
        return;
    for (const auto& [id, each] : calls_) {
        const bool is_earlier = each->acquires && !each->cancelled_at && !each->is_finite &&
                                each->state == granted.state && each->key == granted.key &&
                                each->mode == lock_mode::exclusive && each->started + slack < granted.started &&
                                each->blocked_before == each->on->blocked_total;
        if (!is_earlier || granted.mode != lock_mode::exclusive)
            continue;
        if (!each->is_group)
            world_.violate("a later call of the same locker overtook call " + std::to_string(id));
        else if (world_.true_time() > calm_begins + settling_time && ++each->overtaken > max_overtaken)
            world_.violate("a group starves, call " + std::to_string(id));
    }
}

/// A lock that its own locker has broken is lost soon. Without faults, because the backend is asked only once.
void execution::check_broken(const tracked_lock& each)
{
    for (const auto& [broken, ended] : each.state->breaks) {
        if (!setting_.has_faults && broken.key == each.key && broken.fence == each.fence && each.fence > 0 &&
            world_.true_time() - std::max(ended, each.received) >
                setting_.answer_timeout + slack + (each.on->blocked_total - each.blocked_before))
            world_.violate("a lock of " + each.key + " is still held after its own locker has broken it");
    }
}

void execution::check_body(tracked_lock& each)
{
    const auto now = world_.true_time();
    body_state& body = *each.body;
    const bool held = each.handle->held();
    if (!body.was_lost && !held)
        body.was_lost = now;
    // The last point of time may be long ago.
    if (const auto left = each.handle->valid_for(); !body.margin_reached && held && left <= stop_margin)
        body.margin_reached = now - (stop_margin - left);
    if (now < each.on->busy_until)
        return;
    // A process that was blocked may have renewed the lease before it could notice.
    if (body.margin_reached && each.on->busy_until > *body.margin_reached && each.handle->valid_for() > stop_margin)
        body.margin_reached.reset();
    for (const auto* reason : {&body.was_lost, &body.margin_reached, &body.caller_cancelled}) {
        // The margin cancels a body once, also if the lease is renewed just then.
        if (reason == &body.margin_reached && body.cancelled != time_point())
            continue;
        if (*reason && now - **reason > slack && each.on->busy_until + slack < now && body.cancelled + 5ms < **reason)
            world_.violate("a body was not cancelled, call " + std::to_string(each.by));
    }
}

void execution::check()
{
    const auto now = world_.true_time();
    std::erase_if(tracked_, [](const auto& each) { return each.expired(); });
    for (const auto& each : tracked_) {
        const auto held = each.lock();
        world_.show_clock_of(*held->on);
        if (held->body)
            check_body(*held);
        if (stores_.size() != 1 || !held->handle->held())
            continue;
        const auto& store = *stores_.front();
        if (store.taken_at(held->token))
            check_broken(*held);
        else if (!store.is_valid(held->key, held->token, world_.server_time()))
            world_.violate("a lock of " + held->key + " is held by its handle alone");
    }
    for (const auto& [id, each] : calls_) {
        auto bound = each->bound;
        if (each->cancelled_at && !each->runs_body)
            bound = std::min(bound, *each->cancelled_at + slack);
        if (bound != time_point::max() && now > bound + (each->on->blocked_total - each->blocked_before) &&
            now >= each->on->busy_until + slack)
            world_.violate(std::string(each->name) + " " + std::to_string(id) + " did not end in time");
    }
    if (now >= calm_begins + settling_time)
        check_waiters();
}

/// A waiter of a free lock is served soon.
void execution::check_waiters()
{
    if (stores_.size() != 1)
        return;
    const auto now = world_.true_time();
    const auto bound = (setting_.can.events ? 1s : 5s) + 4 * setting_.max_delay + slack;
    for (const auto& [id, each] : calls_) {
        if (!each->acquires || each->is_group || each->is_finite || each->cancelled_at || each->key.empty())
            continue;
        if (stores_.front()->has_holders(each->key, world_.server_time()))
            occupied_[each->key] = now;
        const auto since = std::max({occupied_[each->key], each->started, calm_begins + settling_time});
        if (now - since > bound)
            world_.violate("a waiter of the free lock " + each->key + " was not served, call " + std::to_string(id));
    }
}

void execution::check_end()
{
    for (const auto& [id, each] : calls_) {
        if (std::string_view(each->name) != name_of(action::wait_for_loss))
            return world_.violate(std::string("at the end, call ") + std::to_string(id) + " " + each->name + " waits");
    }
    for (const auto& each : world_.processes) {
        for (unsigned number = 0; number < each->lockers.size(); ++number) {
            if (!each->lockers[number])
                continue;
            const auto made = make_call("last shutdown", *each, number);
            made->state->is_closed = true;
            made->bound = world_.true_time() + 40s;
            random_source random(plan_.seed);
            start(
                made, random,
                [](execution* self, locker of) -> awaitable<void> {
                    const auto report = co_await of.shutdown(30s);
                    if (!report.clean())
                        self->world_.violate("the last shutdown was not clean");
                }(this, *each->lockers[number]),
                false);
        }
    }
    world_.run_until(world_.true_time() + 60s, [&] { return calls_.empty(); });
    if (!world_.violation().empty())
        return;
    for (const auto& each : world_.processes) {
        for (unsigned number = 0; number < each->lockers.size(); ++number) {
            if (!each->lockers[number])
                continue;
            const auto stats = each->lockers[number]->stats();
            const auto& events = states_[{each.get(), number}]->events;
            std::uint64_t losses = 0;
            for (const auto count : stats.losses)
                losses += count;
            if (stats.held + stats.waiting + stats.settling > 0)
                world_.violate("at the end, a locker holds, waits or settles");
            if (stats.grants != stats.releases + losses)
                world_.violate("grants, releases and losses do not balance");
            // A release that is not answered is reported as settled.
            if (events &&
                (events->granted_count != stats.grants || events->lost_count != losses ||
                    events->released_count > stats.releases || events->settled_count != stats.settled ||
                    events->released_count + stats.settled < stats.releases ||
                    events->not_granted_count != stats.exhausted + stats.cancelled + stats.shut_down + stats.failed))
                world_.violate("the events do not balance");
        }
    }
    for (const auto& each : world_.processes)
        each->lockers.clear();
    world_.run_until(world_.true_time() + 200s);
    for (const auto& store : stores_) {
        if (!store->is_empty(world_.server_time()))
            world_.violate("at the end, the server still stores a claim");
    }
    for (const auto& each : world_.processes) {
        for (const auto& link : each->links) {
            if (link->unfinished() > 0)
                world_.violate("at the end, a request or a wait is left");
        }
    }
    if (!world_.is_idle())
        world_.violate("at the end, a timer or an operation is left");
}

} // namespace colock::simulation
