// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/execution.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

namespace colock::simulation {

namespace {

/// Returns an object that marks a handle as busy. A parameter of a coroutine, which may end before it has begun.
std::shared_ptr<void> mark_busy(std::shared_ptr<owned> handle)
{
    handle->is_busy = true;
    return {nullptr, [handle = std::move(handle)](std::nullptr_t) { handle->is_busy = false; }};
}

} // namespace

acquire_options execution::draw_options(random_source& random, call& of) const
{
    acquire_options options;
    if (setting_.can.shared && random.once_in(4)) {
        options.mode = lock_mode::shared;
        if (random.once_in(2))
            options.max_holders = 2;
    }
    of.mode = options.mode;
    if (setting_.can.no_ttl && random.once_in(8))
        options.ttl = 0ms;
    else if (random.once_in(2))
        options.ttl = std::chrono::duration_cast<milliseconds>(random.between(400ms, 9s));
    if (random.once_in(2))
        options.renewal = renewal::automatic;
    if (options.ttl != 0ms && random.once_in(8))
        options.max_hold = std::chrono::duration_cast<milliseconds>(random.between(500ms, 6s));
    switch (random.below(6)) {
    case 0:
        options.retry = retry_policy::fixed(random.between(10ms, 300ms));
        break;
    case 1:
        options.retry = retry_policy::exponential(5ms, 2.0, 500ms).times(random.below(6));
        of.is_finite = true;
        break;
    case 2: {
        const auto limit = random.between(1ms, 4s);
        options.retry = within(limit);
        of.is_finite = true;
        of.bound = world_.true_time() + limit + slack;
        break;
    }
    default:
        break;
    }
    return options;
}

asio::awaitable<void> execution::run_acquire(call_ptr made, std::string key, acquire_options options, bool is_async,
    std::optional<lease_clock::duration> within, random_source random)
{
    // No copy of the locker, so that another step may drop the last one.
    const locker& by = *made->on->lockers[made->locker_number];
    const auto max_holders = options.max_holders;
    std::optional<lock> held;
    if (within)
        held = is_async ? co_await by.async_try_acquire(key, *within, options)
                        : co_await by.try_acquire(key, *within, options);
    else if (is_async)
        held = co_await by.async_acquire(key, options);
    else
        held = co_await by.acquire(key, options);
    if (!held)
        co_return;
    check_order(*made);
    own(*made, std::move(*held), random, max_holders);
}

asio::awaitable<void> execution::run_acquire_all(call_ptr made, std::vector<group_member> keys, acquire_options options,
    bool is_async, std::optional<lease_clock::duration> within, random_source random)
{
    // No copy of the locker, so that another step may drop the last one.
    const locker& by = *made->on->lockers[made->locker_number];
    const auto max_holders = options.max_holders;
    std::optional<lock_group> held;
    if (within)
        held = co_await by.try_acquire_all(keys, *within, options);
    else if (is_async)
        held = co_await by.async_acquire_all(keys, options);
    else
        held = co_await by.acquire_all(keys, options);
    if (held)
        own(*made, std::move(*held), random, max_holders);
}

asio::awaitable<void> execution::run_body(call_ptr made, std::vector<const lock*> held, random_source random)
{
    std::vector<std::shared_ptr<tracked_lock>> tracked;
    const auto state = std::make_shared<body_state>();
    for (const lock* each : held) {
        tracked.push_back(track(*made, *each, 0));
        tracked.back()->body = state;
    }
    if (!made->is_group)
        check_order(*made);
    made->key.clear();
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    unsigned ignored = random.once_in(2) ? random.below(4) : 0;
    lease_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(is_storm() ? random.between(1ms, 3s) : random.between(5ms, 60ms));
    for (;;) {
        const auto [cancelled] = co_await timer.async_wait(asio::as_tuple(asio::deferred));
        if (!cancelled)
            co_return;
        world_.note("the body of ", made->id, " is cancelled");
        state->cancelled = world_.true_time();
        if (ignored-- == 0)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    }
}

asio::awaitable<void> execution::run_with_lock(call_ptr made, std::vector<group_member> keys, acquire_options options,
    bool is_async, bool is_limited, random_source random)
{
    // No copy of the locker, so that another step may drop the last one.
    const locker& by = *made->on->lockers[made->locker_number];
    const auto body = [this, made, random](lock& held) { return run_body(made, {&held}, random); };
    const auto group_body = [this, made, random](lock_group& held) {
        std::vector<const lock*> locks;
        for (const auto& each : held.locks())
            locks.push_back(&each);
        return run_body(made, std::move(locks), random);
    };
    if (keys.size() > 1) {
        co_await by.with_lock(keys, options, group_body);
    } else if (is_limited) {
        static_cast<void>(co_await by.try_with_lock(keys.front().key, 500ms, options, body));
    } else if (is_async) {
        co_await by.async_with_lock(keys.front().key, options, body);
    } else {
        co_await by.with_lock(keys.front().key, options, body);
    }
}

/// Detaches a lock, and adopts it on another process.
asio::awaitable<void> execution::run_transfer(
    std::shared_ptr<owned> from, random_source random, std::shared_ptr<void> /*busy*/)
{
    auto ticket = co_await from->single.detach();
    auto& to = *world_.processes[random.below(setting_.process_count)];
    if (!to.lockers[0])
        co_return;
    // Continues on the other process.
    asio::post(to.io, [this, &to, ticket = std::move(ticket), random]() mutable {
        const auto adopts = make_call("adopt", to, 0);
        // An adoption is repeated until the operation timeout.
        adopts->bound = world_.true_time() + setting_.operation_timeout + slack;
        start(
            adopts, random, [](execution* self, call_ptr by, std::string what, random_source draw) -> awaitable<void> {
                if (!by->on->lockers[0])
                    co_return;
                const locker target = *by->on->lockers[0];
                auto held = co_await target.adopt(std::move(what), {});
                self->own(*by, std::move(held), draw, 0);
            }(this, adopts, std::move(ticket), random));
    });
}

void execution::do_step(const step& what)
{
    random_source random(what.seed);
    process& on = *world_.processes[random.below(setting_.process_count)];
    const auto number = random.below(setting_.lockers_per_process);
    if (what.what >= action::cut)
        return do_fault(what, random);
    // A process that is blocked makes no call.
    asio::post(on.io, [this, &what, &on, number, random]() mutable {
        if (!on.lockers[number] && is_storm())
            make_locker(on, number);
        if (!on.lockers[number])
            return;
        // A grant and a break are often on their way at the same time.
        if (what.what == action::break_lock && is_storm() && random.once_in(2))
            do_acquire({what.at, action::acquire, what.seed + 1}, random, on, number);
        if (what.what <= action::callback)
            do_acquire(what, random, on, number);
        else if (what.what <= action::transfer)
            do_with_handle(what, random);
        else
            do_administration(what, random, on, number);
    });
}

void execution::do_fault(const step& what, random_source& random)
{
    if (!setting_.has_faults || setting_.kind == backend_kind::memory)
        return;
    process& on = *world_.processes[random.below(setting_.process_count)];
    const auto server = random.below(static_cast<std::uint32_t>(on.links.size()));
    auto& link = *on.links[server];
    world_.note("fault ", name_of(what.what));
    const auto length = random.between(50ms, 5s);
    const auto restore = [this, &link] { restore_link(link); };
    switch (what.what) {
    case action::cut:
        link.cut(random.between(1ms, 2s));
        // Sometimes the server restarts, with or without its data, and the links of all processes to it are cut. A
        // quorum promises nothing if a node loses its data.
        if (what.seed % 16 == 0 && stores_.size() == 1)
            stores_.front()->lose_data(world_.server_time());
        for (const auto& each : world_.processes) {
            if (what.seed % 8 == 0)
                each->links[server]->cut(random.between(1ms, 2s));
        }
        return;
    case action::silence:
        link.quality.silent_until = std::min(world_.true_time() + length, calm_begins);
        return;
    case action::slow_link:
        link.quality.max_delay = random.between(50ms, 900ms);
        break;
    default:
        link.quality.refused_once_in = 1 + random.below(4);
        break;
    }
    world_.after(length, restore);
}

void execution::do_acquire(const step& what, random_source& random, process& on, unsigned number)
{
    const auto made = make_call(name_of(what.what), on, number);
    made->acquires = true;
    auto options = draw_options(random, *made);
    const bool is_async = random.once_in(2);
    std::optional<lease_clock::duration> within;
    if (what.what == action::try_acquire || (what.what == action::acquire_all && random.once_in(4))) {
        within = random.once_in(2) ? lease_clock::duration::zero() : random.between(1ms, 2s);
        made->is_finite = true;
        // A single attempt waits for its answer.
        made->bound = world_.true_time() + std::max<lease_clock::duration>(*within, 0s) +
                      (*within > 0s ? 0ms : 3 * setting_.answer_timeout) + slack;
    }
    if (what.what == action::acquire || what.what == action::try_acquire) {
        made->key = draw_key(random);
        return start(made, random, run_acquire(made, made->key, options, is_async, within, random));
    }
    if (what.what == action::callback) {
        // The handler is called by the library itself, and may throw.
        made->key = draw_key(random);
        calls_.emplace(made->id, made);
        world_.note("call ", made->id, " callback ", made->key);
        const bool throws = random.once_in(2);
        return on.lockers[number]->async_acquire(made->key, options,
            [this, made, random, throws, max_holders = options.max_holders](error_code failed, lock held) mutable {
                finish(*made, failed ? std::make_exception_ptr(boost::system::system_error(failed)) : nullptr);
                if (!failed) {
                    check_order(*made);
                    own(*made, std::move(held), random, max_holders);
                }
                if (throws)
                    throw thrown_by_handler();
            });
    }
    std::vector<group_member> keys;
    const unsigned wanted = what.what == action::with_lock && !random.once_in(4) ? 1 : 1 + random.below(3);
    for (unsigned n = 0; n < wanted; ++n)
        keys.emplace_back(draw_key(random));
    made->is_group = keys.size() > 1 || what.what == action::acquire_all;
    made->key = std::ranges::min(keys, {}, &group_member::key).key;
    if (what.what == action::acquire_all)
        return start(made, random, run_acquire_all(made, keys, options, is_async, within, random));
    made->runs_body = true;
    const bool is_limited = random.once_in(4);
    made->is_finite |= is_limited;
    made->bound = time_point::max();
    start(made, random, run_with_lock(made, keys, options, is_async, is_limited, random));
}

void execution::do_with_handle(const step& what, random_source& random)
{
    if (owned_.empty())
        return;
    auto found = owned_.begin();
    std::advance(found, random.below(static_cast<std::uint32_t>(owned_.size())));
    const auto handle = found->second;
    process& on = *handle->on;
    if (handle->is_busy)
        return;
    if (what.what == action::release) {
        owned_.erase(found);
        return give_up(handle, random);
    }
    const auto made = make_call(name_of(what.what), on, handle->locker_number);
    // The function may first wait for a renewal, and for another function of the lock.
    made->bound = world_.true_time() + 3 * setting_.operation_timeout + 2 * setting_.answer_timeout + slack;
    const bool is_async = random.once_in(2);
    // The code runs on the process of the handle.
    asio::post(on.io, [this, &what, made, handle, is_async, random]() mutable {
        if (handle->is_busy)
            return;
        const bool is_group = !handle->group.empty();
        // A lock that never expires is left if its adoption fails.
        const bool transfers = what.what == action::transfer && !is_group && setting_.can.tickets &&
                               setting_.can.expires && handle->single.ttl() > 0ms;
        const auto busy = (is_group && what.what == action::extend) || transfers ? mark_busy(handle) : nullptr;
        const auto ttl = std::chrono::duration_cast<milliseconds>(random.between(400ms, 9s));
        if (transfers)
            return start(made, random, run_transfer(handle, random, busy));
        handle->is_awaited |= what.what == action::wait_for_loss;
        if (what.what == action::wait_for_loss)
            made->bound = time_point::max();
        start(made, random,
            [](action which, std::shared_ptr<owned> of, milliseconds span, bool async, bool group,
                std::shared_ptr<void> /*busy*/) -> awaitable<void> {
                if (which == action::extend && group)
                    static_cast<void>(co_await of->group.extend(span));
                else if (which == action::extend && async)
                    co_await of->single.async_extend(span);
                else if (which == action::extend)
                    co_await of->single.extend(span);
                else if (which == action::is_locked && !group)
                    static_cast<void>(co_await of->single.is_locked());
                else if (which == action::wait_for_loss && group)
                    static_cast<void>(co_await of->group.lost());
                else if (which == action::wait_for_loss)
                    static_cast<void>(co_await of->single.lost());
            }(what.what, handle, ttl, is_async, is_group, busy));
    });
}

void execution::do_administration(const step& what, random_source& random, process& on, unsigned number)
{
    auto made = make_call(name_of(what.what), on, number);
    const locker by = *on.lockers[number];
    made->bound = world_.true_time() + 4 * setting_.operation_timeout + slack;
    const auto key = draw_key(random);
    made->key = key;
    switch (what.what) {
    case action::break_lock:
        if (!is_storm())
            return;
        if (setting_.kind == backend_kind::quorum) {
            // Which locks are broken is known to the nodes only.
            broken_until_[key] = world_.true_time() + 10s;
            for (const auto& each : tracked_) {
                if (const auto held = each.lock(); held && held->key == key)
                    held->is_exempt = true;
            }
        }
        return start(made, random, [](execution* self, call_ptr by_call, locker of) -> awaitable<void> {
            for (auto& each : co_await of.break_lock(by_call->key))
                by_call->state->breaks.emplace_back(std::move(each), self->world_.true_time());
        }(this, made, by));
    case action::list:
        return start(made, random, [](locker of, std::string name) -> awaitable<void> {
            static_cast<void>(of.waiting_acquires().size() + of.held_locks().size());
            static_cast<void>(co_await of.is_locked(name));
            static_cast<void>(co_await of.list());
        }(by, key));
    case action::purge:
        return start(made, random, [](locker of) -> awaitable<void> { static_cast<void>(co_await of.purge(3)); }(by));
    case action::grow_group:
    case action::group_by_id: {
        made->acquires = false;
        made->is_finite = true;
        made->bound = time_point::max();
        const bool by_id = what.what == action::group_by_id && setting_.can.groups;
        if (by_id && !is_storm())
            return;
        return start(made, random,
            [](execution* self, call_ptr of, locker with, std::string name, bool id,
                random_source draw) -> awaitable<void> {
                auto group = with.group(id ? "the group" : "");
                auto options = self->draw_options(draw, *of);
                options.retry = within(2s);
                of->is_finite = true;
                of->bound = time_point::max();
                co_await group.acquire(name, options);
                if (id && draw.once_in(2)) {
                    static_cast<void>(co_await group.extend(3s));
                    static_cast<void>(co_await group.release());
                } else {
                    self->own(*of, std::move(group), draw, options.max_holders);
                }
            }(this, made, by, key, by_id, random));
    }
    case action::shut_down:
    case action::drop_locker: {
        if (!is_storm())
            return;
        made->state->is_closed = true;
        if (what.what == action::drop_locker) {
            world_.note("drop the locker");
            on.lockers[number].reset();
            return;
        }
        // A lock that never expires is left if it cannot be released in time.
        const auto deadline = setting_.can.no_ttl || !setting_.can.expires
                                  ? 30s
                                  : std::chrono::duration_cast<milliseconds>(random.between(0ms, 4s));
        made->bound = world_.true_time() + deadline + slack;
        // Another locker takes the place of the one that was shut down.
        on.lockers[number].reset();
        return start(made, random, [](locker of, milliseconds span) -> awaitable<void> {
            static_cast<void>(co_await of.shutdown(span));
        }(by, deadline));
    }
    default:
        return;
    }
}

} // namespace colock::simulation
