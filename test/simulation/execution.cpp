// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/execution.hpp"

#include "quorum/adapter.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

namespace colock::simulation {

execution::execution(const plan& planned, std::ostream* timeline)
    : plan_(planned), setting_(planned.seed), world_(planned.seed, timeline)
{
    make_processes(timeline != nullptr);
    world_.check = [this] { check(); };
    for (const auto& each : plan_.steps)
        world_.after(each.at, [this, &each] { do_step(each); });
}

execution::~execution()
{
    is_ending_ = true;
    // Handles may be destroyed before or after their contexts.
    if (plan_.seed % 2 == 0)
        owned_.clear();
    world_.clear();
}

void execution::make_processes(bool has_timeline)
{
    auto& random = world_.random();
    const auto draw_rate = [&] { return 1.0 + (static_cast<double>(random.below(800)) - 400.0) * 1e-5; };
    const bool one_clock = setting_.kind == backend_kind::memory;
    world_.server_clock = {time_point(std::chrono::hours(1000)), draw_rate()};
    const std::size_t servers = setting_.kind == backend_kind::quorum  ? 3
                                : setting_.kind == backend_kind::model ? 1
                                                                       : 0;
    auto node_can = setting_.can;
    if (servers == 3)
        node_can = {.no_ttl = true, .fence = true, .list = true, .events = true, .tickets = true};
    for (std::size_t n = 0; n < servers; ++n)
        stores_.push_back(std::make_shared<model_store>(node_can));
    if (has_timeline) {
        for (const auto& store : stores_)
            store->trace = [this](const std::string& change) { world_.note(change); };
    }
    for (unsigned n = 0; n < setting_.process_count; ++n) {
        auto& added = *world_.processes.emplace_back(std::make_unique<process>());
        added.clock = one_clock ? drifting_clock{time_point(10h)}
                                : drifting_clock{time_point(std::chrono::hours(1 + random.below(1000))), draw_rate()};
        world_.show_clock_of(added);
        std::vector<std::shared_ptr<adapter>> nodes;
        for (const auto& store : stores_) {
            const model_options options{node_can, setting_.answer_timeout, setting_.reports_timeout && servers == 1};
            auto link = std::make_shared<model_adapter>(added.io.get_executor(), store, world_, options);
            restore_link(*link);
            added.links.push_back(link);
            nodes.push_back(std::move(link));
        }
        if (setting_.kind == backend_kind::memory)
            added.backend = memory::make_adapter(added.io.get_executor());
        else if (setting_.kind == backend_kind::model)
            added.backend = nodes.front();
        else
            added.backend = quorum::make_adapter(added.io.get_executor(), nodes,
                {.name = "quorum", .operation_timeout = setting_.answer_timeout, .poll_interval = 100ms});
        added.lockers.resize(setting_.lockers_per_process);
        for (unsigned number = 0; number < setting_.lockers_per_process; ++number)
            make_locker(added, number);
    }
}

void execution::make_locker(process& on, unsigned number)
{
    auto& state = states_[{&on, number}] = std::make_shared<locker_state>();
    locker_options options{.ttl = 5s, .owner = "p", .host = "h", .operation_timeout = setting_.operation_timeout};
    options.stop_margin = stop_margin;
    if (setting_.has_observer) {
        state->events = std::make_shared<event_counter>();
        state->events->on_event = [this, &on, number, random = random_source(world_.random().next())](
                                      std::string_view lost_key) mutable {
            if (is_ending_ || !is_storm() || world_.current() != &on)
                return;
            if (setting_.observer_is_slow && random.once_in(6))
                world_.block(1s, lost_key);
            else if (random.once_in(10) && on.lockers[number])
                static_cast<void>(on.lockers[number]->stats().held + on.lockers[number]->held_locks().size());
        };
        options.observer = state->events;
        options.debug = plan_.seed % 3 == 0;
    }
    if (plan_.seed % 5 == 0)
        options.purge = background_purge{.interval = 3s, .limit = 10};
    on.lockers[number].emplace(on.backend, options);
}

run_result execution::run()
{
    world_.run_until(calm_begins);
    for (const auto& each : world_.processes) {
        for (const auto& link : each->links)
            restore_link(*link);
    }
    world_.note("the calm begins");
    world_.run_until(quiet_begins);
    world_.note("the quiet period begins");
    if (!setting_.ends_abruptly) {
        world_.run_until(quiet_ends, [&] { return all_ended(); });
        if (world_.violation().empty())
            check_end();
    }
    for (const auto& store : stores_)
        world_.note(store->describe(world_.server_time()));
    return {.violation = world_.violation(),
        .hash = world_.hash(),
        .grants = grants_,
        .handlers = world_.handlers,
        .virtual_time = world_.true_time().time_since_epoch()};
}

execution::call_ptr execution::make_call(const char* name, process& on, unsigned number)
{
    auto made = std::make_shared<call>();
    made->id = ++last_id_;
    made->name = name;
    made->state = states_[{&on, number}];
    made->on = &on;
    made->locker_number = number;
    made->started = world_.true_time();
    made->blocked_before = on.blocked_total;
    return made;
}

asio::awaitable<void> execution::accept_all(bool accepts, awaitable<void> coroutine)
{
    if (accepts)
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await std::move(coroutine);
}

void execution::start(const call_ptr& made, random_source& random, awaitable<void> coroutine, bool may_cancel)
{
    /// Detects a handler that is destroyed without having been called.
    struct end_guard
    {
        execution* self;
        call_ptr made;
        end_guard(execution* owner, call_ptr of) : self(owner), made(std::move(of)) {}
        end_guard(end_guard&& other) noexcept = default;
        ~end_guard()
        {
            if (made && !made->has_ended && !self->is_ending_)
                self->world_.violate(std::string("the handler of ") + made->name + " was not called");
        }
        void operator()(const std::exception_ptr& failure) { self->finish(*made, failure); }
    };
    calls_.emplace(made->id, made);
    made->accepts_all = random.once_in(2);
    world_.note("call ", made->id, " ", made->name, " ", made->key);
    if (may_cancel && random.once_in(4))
        cancel_later(made, random);
    asio::co_spawn(made->on->io, accept_all(made->accepts_all, std::move(coroutine)),
        asio::bind_cancellation_slot(made->signal.slot(), end_guard(this, made)));
}

void execution::cancel_later(const call_ptr& made, random_source& random)
{
    constexpr asio::cancellation_type types[] = {asio::cancellation_type::terminal, asio::cancellation_type::total,
        asio::cancellation_type::partial, asio::cancellation_type::all};
    const auto type = types[random.below(4)];
    const auto wait = random.once_in(3) ? random.between(0us, 3ms) : random.between(0ms, 3s);
    const unsigned times = 1 + random.below(2);
    for (unsigned n = 0; n < times; ++n) {
        world_.after(wait + n * random.between(1ms, 900ms), [this, made, type] {
            asio::post(made->on->io, [this, made, type] {
                if (made->has_ended)
                    return;
                const bool is_effective =
                    made->accepts_all || (type & asio::cancellation_type::terminal) != asio::cancellation_type::none;
                if (is_effective) {
                    world_.note("cancel ", made->id);
                    made->cancelled_at = world_.true_time();
                    made->blocked_before = made->on->blocked_total;
                    for (const auto& each : tracked_) {
                        const auto held = each.lock();
                        if (held && held->body && held->by == made->id)
                            held->body->caller_cancelled = world_.true_time();
                    }
                }
                made->signal.emit(type);
            });
        });
    }
}

void execution::finish(call& ended, const std::exception_ptr& failure)
{
    if (std::exchange(ended.has_ended, true))
        world_.violate(std::string(ended.name) + " completed twice");
    calls_.erase(ended.id);
    error_code code;
    try {
        if (failure)
            std::rethrow_exception(failure);
    } catch (const boost::system::system_error& failed) {
        code = failed.code();
    } catch (const std::exception& unexpected) {
        world_.violate(std::string(ended.name) + " has thrown " + unexpected.what());
    }
    world_.note("end of ", ended.id, " ", ended.name, code ? ": " : "", code ? code.message() : "");
    if (code)
        check_error(ended, code);
}

std::shared_ptr<tracked_lock> execution::track(const call& by, const lock& held, std::size_t max_holders)
{
    const auto added = std::make_shared<tracked_lock>(tracked_lock{.by = by.id,
        .handle = &held,
        .on = by.on,
        .state = by.state,
        .key = held.key(),
        .mode = held.mode(),
        .max_holders = max_holders,
        .token = held.token(),
        .fence = held.fence(),
        .received = world_.true_time(),
        .blocked_before = by.on->blocked_total});
    ++grants_;
    if (const auto until = broken_until_.find(added->key); until != broken_until_.end())
        added->is_exempt = world_.true_time() < until->second;
    world_.note(
        "call ", by.id, " received ", added->key, " ", added->token.hex().substr(0, 6), " with fence ", added->fence);
    check_exclusion(*added);
    tracked_.push_back(added);
    return added;
}

void execution::own(const call& by, lock single, random_source& random, std::size_t max_holders)
{
    auto added = std::make_shared<owned>();
    added->single = std::move(single);
    added->on = by.on;
    added->locker_number = by.locker_number;
    added->tracked.push_back(track(by, added->single, max_holders));
    keep(added, random);
}

void execution::own(const call& by, lock_group group, random_source& random, std::size_t max_holders)
{
    auto added = std::make_shared<owned>();
    added->group = std::move(group);
    added->on = by.on;
    added->locker_number = by.locker_number;
    for (const auto& each : added->group.locks())
        added->tracked.push_back(track(by, each, max_holders));
    keep(added, random);
}

/// Holds the locks for a while.
void execution::keep(const std::shared_ptr<owned>& added, random_source& random)
{
    const auto id = ++last_id_;
    owned_.emplace(id, added);
    const auto time = is_storm() ? random.between(1ms, random.once_in(4) ? 8s : 400ms) : random.between(5ms, 60ms);
    world_.after(time, [this, id, random]() mutable {
        const auto found = owned_.find(id);
        if (found == owned_.end())
            return;
        const auto handle = found->second;
        owned_.erase(found);
        give_up(handle, random);
    });
}

/// Releases the locks, or destroys the handle. Operations in progress keep the handle.
void execution::give_up(const std::shared_ptr<owned>& handle, random_source& random)
{
    // The harness runs the code on the process of the handle.
    asio::post(handle->on->io, [this, handle, random]() mutable {
        // A coroutine that waits for the loss would keep a handle that is dropped.
        if (handle->is_busy && handle->is_awaited)
            return world_.after(100ms, [this, handle, random]() mutable { give_up(handle, random); });
        if (handle->is_busy || (random.once_in(3) && !handle->is_awaited)) {
            world_.note("drop ", handle->tracked.empty() ? "" : handle->tracked.front()->key);
            return;
        }
        handle->is_busy = true;
        // The handles of a group are gone before its release has ended.
        handle->tracked.clear();
        const auto made = make_call("release", *handle->on, handle->locker_number);
        made->bound = world_.true_time() + setting_.operation_timeout + slack;
        // By id, the other locks of the group are released after those of the handle.
        if (!handle->group.empty())
            made->bound += setting_.operation_timeout;
        const auto report = random.once_in(2) ? on_failure::raise : on_failure::quiet;
        const bool is_async = random.once_in(2);
        start(made, random, [](std::shared_ptr<owned> of, on_failure how, bool async) -> awaitable<void> {
            if (!of->group.empty()) {
                static_cast<void>(co_await of->group.release());
                co_return;
            }
            if (async)
                co_await of->single.async_release(how);
            else
                co_await of->single.release(how);
        }(handle, report, is_async));
    });
}

run_result execute(const plan& planned, std::ostream* timeline)
{
    return execution(planned, timeline).run();
}

} // namespace colock::simulation
