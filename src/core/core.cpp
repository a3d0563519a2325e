// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"

#include "core/validation.hpp"
#include "core/work.hpp"

#include <colock/observer.hpp>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <unistd.h>

#include <algorithm>
#include <climits>

namespace colock::detail {

using namespace std::chrono_literals;

namespace {

std::string host_name()
{
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::shared_ptr<const owner_data> default_owner(const locker_options& options)
{
    auto owner = std::make_shared<owner_data>();
    owner->owner = options.owner.empty() ? std::to_string(::getpid()) : options.owner;
    owner->host = options.host.empty() ? host_name() : options.host;
    return owner;
}

} // namespace

std::shared_ptr<core> core::make(std::shared_ptr<adapter> backend, locker_options options)
{
    if (!backend) {
        throw validation_error(errc::invalid_options,
            {.detail = "the adapter is null; make one with a factory, such as colock::memory::make_adapter"});
    }
    check_locker_options(options, *backend);
    auto made = std::make_shared<core>(std::move(backend), std::move(options));
    made->timers_.tell<&core::on_timer>(made);
    if (const auto executor = made->executor())
        join_context(executor, made);
    if (made->options_.observer)
        made->backend_->attach(made->options_.observer);
    made->backend_->add_user();
    return made;
}

core::core(std::shared_ptr<adapter> backend, locker_options options)
    : backend_(std::move(backend)), can_(backend_->capabilities()), limits_(backend_->limits()),
      options_(std::move(options)), margins_{options_.minimum_validity, options_.stop_margin},
      watches_all_(options_.observer || !can_.expires), owner_(default_owner(options_)), timers_(*backend_),
      queues_(can_.fifo, timers_)
{
}

core::record_ptr core::prepare(const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options,
    renewal by_default, bool queues, std::string_view group)
{
    const auto ttl = options.ttl.value_or(self->options_.ttl);
    const auto max_hold = options.max_hold ? options.max_hold : self->options_.max_hold;
    auto refused = self->check(key, options);
    if (!refused && self->margins_.any())
        refused = check_margins(ttl, self->options_, by_default);
    auto owner = self->owner_;
    if (!options.owner.empty() || !options.comment.empty() || !group.empty()) {
        auto special = std::make_shared<owner_data>(*owner);
        if (!options.owner.empty())
            special->owner = std::move(options.owner);
        special->comment = std::move(options.comment);
        special->group = group;
        owner = std::move(special);
    }
    record_ptr made(new record(self, {.key = std::move(key),
                                         .mode = options.mode,
                                         .max_holders = options.max_holders,
                                         .ttl = ttl,
                                         .queues = queues,
                                         .owner = std::move(owner)}));
    made->refused = std::move(refused);
    if (options.retry)
        made->own_policy = std::make_unique<const retry_policy>(std::move(*options.retry));
    made->plan.asked_for(
        options.renewal.value_or(by_default) == renewal::automatic && ttl > 0ms, max_hold.value_or(0ms));
    return made;
}

std::unique_ptr<const failure> core::check(std::string_view key, const acquire_options& options) const
{
    auto refused = check_key(key, limits_);
    if (!refused && options.ttl)
        refused = check_ttl(*options.ttl, limits_, can_);
    if (!refused && (options.mode != lock_mode::exclusive || options.max_holders != 0))
        refused = check_mode(options.mode, options.max_holders, can_, backend_->name());
    if (!refused && !options.owner.empty())
        refused = check_label("owner", options.owner);
    if (!refused && !options.comment.empty())
        refused = check_label("comment", options.comment);
    if (!refused && options.retry)
        refused = check_retry(*options.retry);
    if (!refused && options.max_hold)
        refused = check_max_hold(*options.max_hold, limits_);
    return refused;
}

error_context core::context_of(const record& wanted) const
{
    return {.key = wanted.key(),
        .backend = backend_name(),
        .attempts = wanted.attempts_made,
        .elapsed = wanted.started == time_point{} ? 0ns : lease_clock::now() - wanted.started};
}

std::vector<held_lock> core::held_locks()
{
    std::vector<held_lock> result;
    const std::lock_guard guard(mutex_);
    const auto now = lease_clock::now();
    for (const record& held : held_) {
        const auto ends = held.lease().valid_until();
        if (ends <= now)
            continue;
        held_lock& seen = result.emplace_back();
        seen.key = held.key();
        seen.group = held.owner().group;
        seen.mode = held.mode();
        seen.fence = held.fence;
        seen.ttl = held.ttl();
        if (ends != time_point::max())
            seen.valid_for = ends - now;
    }
    return result;
}

locker_stats core::stats()
{
    locker_stats result;
    {
        const std::lock_guard guard(mutex_);
        result = stats_;
        // An expiry is noticed by nobody unless somebody listens.
        const auto now = lease_clock::now();
        result.held = static_cast<std::uint64_t>(std::count_if(
            held_.begin(), held_.end(), [now](const record& held) { return now < held.lease().valid_until(); }));
    }
    result.unproven += backend_->unproven();
    result.reconnects = backend_->reconnects();
    return result;
}

void core::orphan()
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        closed_to_new_ = true;
        pausing_.notify(todo.wakes);
        queues_.for_each([&](record& member) { member.notify(todo.wakes); });
    }
    todo.run(*this);
    detach_from_backend(options_.operation_timeout, [](closed) {});
}

void core::detach_from_backend(lease_clock::duration patience, completion<closed> done)
{
    bool is_last = false;
    {
        const std::lock_guard guard(mutex_);
        is_last = !std::exchange(detached_, true) && backend_->remove_user() && !dead_;
    }
    if (is_last)
        backend_->start_close(patience, std::move(done));
    else
        done(closed{});
}

void core::context_shutdown() noexcept
{
    work todo;
    std::optional<lease_timer> timer;
    {
        const std::lock_guard guard(mutex_);
        dead_ = true;
        closed_to_new_ = true;
        timer = timers_.stop();
        while (!parked_.empty())
            todo.wakes.add(parked_.front());
        while (!ending_.empty())
            end(ending_.front(), false, todo);
    }
    // Destroying the handlers destroys coroutines, and with them what they hold.
    todo.run(*this);
}

/// Takes a notice out of the timers when the coroutine that waits on it ends, however that comes.
struct core::unscheduled
{
    core& self;
    waitable& source;

    ~unscheduled()
    {
        work todo;
        {
            const std::lock_guard guard(self.mutex_);
            self.timers_.schedule(source, time_point::max());
            // Whoever else waits on it asks for its own time.
            source.notify(todo.wakes);
        }
        todo.run(self);
    }
};

asio::awaitable<void> core::pause(std::shared_ptr<core> self, const record& wanted, time_point until)
{
    const unscheduled at_end{*self, self->pausing_};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            if (self->closed_to_new_ || lease_clock::now() >= until)
                break;
            self->timers_.schedule(self->pausing_, std::min(self->pausing_.due, until));
            seen = self->pausing_.version;
        }
        self->throw_if_inherited(wanted);
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await self->park(self->pausing_, place, seen);
    }
    if (self->closed_to_new_)
        self->throw_shutting_down(wanted);
}

asio::awaitable<shutdown_report> core::shutdown(std::shared_ptr<core> self, std::chrono::milliseconds deadline)
{
    const auto until = saturating_add(lease_clock::now(), deadline);
    self->begin_shutdown();
    const unscheduled at_end{*self, self->drained_};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            // What ends inside the call that another thread has made is not to be reported as unsettled, and takes no
            // time.
            const bool ends_at_once =
                self->quick_releases_begun_ != self->quick_releases_ended_ || self->granting_at_once_ != 0;
            if (self->held_.empty() && self->ending_.empty() && self->acquiring_ == 0 && !ends_at_once)
                break;
            if (lease_clock::now() < until)
                self->timers_.schedule(self->drained_, std::min(self->drained_.due, until));
            else if (!ends_at_once)
                break;
            seen = self->drained_.version;
        }
        co_await self->park(self->drained_, place, seen);
    }
    auto report = self->end_shutdown();
    // A backend may have something to take back by itself; but what is unsettled here has had its time.
    const auto patience = report.unsettled.empty() ? self->options_.operation_timeout : std::chrono::milliseconds(0);
    co_await close_backend(self, patience, until);
    report.unproven += self->backend_->unproven();
    co_return report;
}

struct core::close_state : notice
{
    bool over = false;
};

asio::awaitable<void> core::close_backend(std::shared_ptr<core> self, lease_clock::duration patience, time_point until)
{
    auto state = std::make_shared<close_state>();
    self->detach_from_backend(patience, [state, weak = self->weak_from_this()](closed) {
        const auto owner = weak.lock();
        if (!owner)
            return;
        work todo;
        {
            const std::lock_guard guard(owner->mutex_);
            state->over = true;
            state->notify(todo.wakes);
        }
        todo.run(*owner);
    });
    const unscheduled at_end{*self, *state};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            if (state->over || lease_clock::now() >= until)
                co_return;
            self->timers_.schedule(*state, until);
            seen = state->version;
        }
        co_await self->park(*state, place, seen);
    }
}

void core::begin_shutdown()
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        closed_to_new_ = true;
        pausing_.notify(todo.wakes);
        queues_.for_each([&](record& member) { member.notify(todo.wakes); });
        for (auto next = held_.begin(); next != held_.end();) {
            record& held = *next++;
            if (held.plan.body_runs())
                stop_body(held, lost_reason::shutting_down, todo);
            else
                begin_end(held, lost_reason::shutting_down, todo);
        }
    }
    todo.run(*this);
}

/// Acquires that have been told to end, but not by their backend: what it has granted them, or may yet, is to be given
/// back.
void core::report_undecided(std::vector<std::string>& keys)
{
    const auto add = [&](const record& wanted) {
        const bool is_granted = wanted.outcome_ready && wanted.outcome.status == create_status::granted;
        const bool keeps_a_place = wanted.left_trace && can_.fifo && !can_.immediate;
        if (wanted.under_way != operation::none || wanted.tainted() || is_granted || keeps_a_place)
            keys.push_back(wanted.key());
    };
    queues_.for_each(add);
    std::for_each(trying_.begin(), trying_.end(), add);
}

shutdown_report core::end_shutdown()
{
    shutdown_report report;
    work todo;
    {
        const std::lock_guard guard(mutex_);
        for (record& held : held_) {
            report.still_running.push_back(held.key());
            held.plan.left_to_its_ttl();
            reschedule_held(held);
        }
        while (!ending_.empty()) {
            record& unanswered = ending_.front();
            left_behind_.push_back(unanswered.key());
            unanswered.settles = true;
            end(unanswered, false, todo);
        }
        report.unsettled = left_behind_;
        report_undecided(report.unsettled);
        report.unproven = stats_.unproven;
    }
    todo.run(*this);
    return report;
}

/// One question to the backend that belongs to no claim.
struct core::query_state : notice
{
    std::optional<list_outcome> outcome;
    bool closed = false;
};

void core::throw_unanswered(const failure_ptr& why, effect what, error_context context) const
{
    const auto known = why ? why : unanswered();
    context.attempts = 1;
    context.cause = known->cause;
    context.detail = known->detail;
    const bool in_doubt = what == effect::writes || known->code != errc::outcome_unknown;
    throw error(in_doubt ? known->code : make_error_code(errc::unavailable), std::move(context));
}

failure_ptr core::unanswered() const
{
    const auto trouble = backend_->trouble();
    return trouble
               ? trouble
               : make_failure(errc::outcome_unknown, "no answer within the operation timeout", asio::error::timed_out);
}

asio::awaitable<list_outcome> core::query(std::shared_ptr<core> self, std::string key, effect what,
    std::function<void(adapter&, completion<list_outcome>)> start)
{
    const auto refuse = [&](errc code, std::string detail) {
        throw validation_error(code, {.key = key, .backend = self->backend_name(), .detail = std::move(detail)});
    };
    if (!self->can_.list)
        refuse(errc::unsupported, self->backend_name() + " cannot list its locks");
    if (self->dead_)
        throw create_error(errc::shutting_down, {.key = key, .backend = self->backend_name()});
    const auto began = lease_clock::now();
    auto state = std::make_shared<query_state>();
    start(*self->backend_, [state, weak = self->weak_from_this()](list_outcome outcome) {
        const auto owner = weak.lock();
        if (!owner)
            return;
        work todo;
        {
            const std::lock_guard guard(owner->mutex_);
            if (!state->closed)
                state->outcome = std::move(outcome);
            state->notify(todo.wakes);
        }
        todo.run(*owner);
    });
    const unscheduled at_end{*self, *state};
    const auto until = self->answer_deadline(began);
    parked place;
    std::optional<list_outcome> answer;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            // After a time-out the question is closed.
            state->closed = state->outcome || lease_clock::now() >= until;
            if (state->closed) {
                answer = std::move(state->outcome);
                break;
            }
            self->timers_.schedule(*state, until);
            seen = state->version;
        }
        co_await self->park(*state, place, seen);
    }
    if (!answer || answer->error) {
        self->throw_unanswered(answer ? answer->error : nullptr, what,
            {.key = key, .backend = self->backend_name(), .elapsed = lease_clock::now() - began});
    }
    co_return std::move(*answer);
}

namespace {

void throw_if_refused(const std::unique_ptr<const failure>& refused, std::string key, std::string backend)
{
    if (refused) {
        throw validation_error(
            refused->code, {.key = std::move(key), .backend = std::move(backend), .detail = refused->detail});
    }
}

} // namespace

asio::awaitable<bool> core::is_locked(std::shared_ptr<core> self, std::string key)
{
    throw_if_refused(check_key(key, self->limits_), key, self->backend_name());
    const auto seen = co_await query(self, key, effect::none,
        [key](adapter& backend, completion<list_outcome> done) { backend.start_inspect(key, std::move(done)); });
    co_return !seen.locks.empty();
}

asio::awaitable<std::vector<lock_status>> core::list(std::shared_ptr<core> self, filter which)
{
    std::vector<lock_status> all;
    for (std::string cursor;;) {
        auto page =
            co_await query(self, {}, effect::none, [which, cursor](adapter& backend, completion<list_outcome> done) {
                backend.start_list(which, cursor, std::move(done));
            });
        all.insert(all.end(), std::make_move_iterator(page.locks.begin()), std::make_move_iterator(page.locks.end()));
        if (page.next.empty())
            co_return all;
        cursor = std::move(page.next);
    }
}

asio::awaitable<std::vector<lock_status>> core::purge(std::shared_ptr<core> self, std::size_t limit)
{
    auto swept = co_await query(self, {}, effect::writes,
        [limit](adapter& backend, completion<list_outcome> done) { backend.start_purge(limit, std::move(done)); });
    co_return std::move(swept.locks);
}

asio::awaitable<std::vector<lock_status>> core::break_lock(std::shared_ptr<core> self, std::string key)
{
    throw_if_refused(check_key(key, self->limits_), key, self->backend_name());
    const auto held_before = self->held_of(key);
    auto broken = co_await query(self, key, effect::writes,
        [key](adapter& backend, completion<list_outcome> done) { backend.start_break(key, std::move(done)); });
    for (const auto& held : held_before)
        self->declare_lost(held, lost_reason::broken);
    // Whether the break came before or after the grant of these, only the backend knows.
    for (const auto& granted_since : self->held_of(key))
        co_await self->ask_if_broken(self, granted_since);
    co_return std::move(broken.locks);
}

std::vector<core::record_ptr> core::held_of(const std::string& key)
{
    std::vector<record_ptr> found;
    const std::lock_guard guard(mutex_);
    for (record& held : held_) {
        if (held.key() == key)
            found.emplace_back(&held);
    }
    return found;
}

asio::awaitable<void> core::ask_if_broken(std::shared_ptr<core> self, record_ptr held)
{
    try {
        static_cast<void>(co_await is_valid(self, held));
    } catch (const error&) {
        // No answer is no loss: it will be found by the next renewal or extension, as in any other process.
    }
}

} // namespace colock::detail
