// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/acquire_failures.hpp"
#include "core/core.hpp"
#include "core/departure.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <optional>

namespace colock::detail {

namespace {

/// An uncontended acquire in memory never suspends; every so often it lets others run.
constexpr unsigned immediate_grants_in_a_row = 64;

} // namespace

void core::stops_acquiring(std::atomic<unsigned>& counter) noexcept
{
    if (add_to(counter, ~0U) == 0 && closed_to_new_)
        tell_drained();
}

core::time_point core::begin_acquire(record& wanted) const
{
    throw_refused(wanted);
    throw_if_inherited(wanted);
    prepare_token(wanted);
    return wanted.started = lease_clock::now();
}

asio::awaitable<lock> core::acquire(std::shared_ptr<core> self, record_ptr wanted)
{
    const auto now = self->begin_acquire(*wanted);
    // Counted from before the first look at whether the locker is closed: a shutdown that has begun since waits for it.
    departure leaving(*self, wanted);
    step next = self->grant_at_once(wanted, now);
    if (next == step::granted) {
        leaving.dismiss();
        co_return record::make_lock(std::move(wanted), std::move(self));
    }
    if (self->closed_to_new_.load())
        self->throw_shutting_down(*wanted);
    leaving.takes_time();
    // One that is not thrown by itself is only recorded; nothing is sent after it.
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    retry_schedule schedule(wanted->own_policy ? *wanted->own_policy : self->options_.retry, now);
    parked place;
    for (std::optional known(now);; known.reset()) {
        std::uint32_t seen = 0;
        if (next == step::again)
            next = self->next_step(wanted, schedule, known, seen);
        switch (next) {
        case step::granted:
            leaving.dismiss();
            co_return record::make_lock(std::move(wanted), std::move(self));
        case step::again:
            break;
        case step::yield:
            seen = waitable::outdated;
            [[fallthrough]];
        case step::park:
        case step::wait:
        case step::turn:
            // Nor is anything waited for.
            if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
                throw boost::system::system_error(asio::error::operation_aborted);
            co_await self->park(*wanted, place, seen);
            next = step::again;
            break;
        }
    }
}

bool core::is_queued(const record& wanted)
{
    const std::lock_guard guard(mutex_);
    return queues_.find(wanted) != nullptr;
}

/// The uncontended acquire of a backend that answers at once: nothing is queued, parked or collected for later.
core::step core::grant_at_once(const record_ptr& wanted, time_point now)
{
    if (!can_.immediate || options_.observer || (queues_.may_have(wanted->key_hash()) && is_queued(*wanted)) ||
        closed_to_new_.load())
        return step::again;
    wanted->attempting.sent_at_once();
    wanted->set_sent(now);
    std::optional<create_outcome> outcome;
    backend_->start_create(wanted, completion<create_outcome>::into(outcome));
    if (outcome->status != create_status::granted) {
        on_created(*wanted, std::move(*outcome));
        return step::again;
    }
    const std::lock_guard guard(mutex_);
    ++stats_.attempts;
    wanted->attempts_made.store(1, std::memory_order_relaxed);
    if (closed_to_new_.load(std::memory_order_relaxed)) {
        // Closed while the backend was asked: what it granted is given back.
        wanted->granted = true;
        wanted->left_trace = true;
        return step::again;
    }
    leases_.hold(*wanted, outcome->fence);
    return stats_.grants % immediate_grants_in_a_row == 0 ? step::yield : step::granted;
}

asio::awaitable<std::optional<lock>> core::try_acquire(std::shared_ptr<core> self, record_ptr wanted)
{
    const auto now = self->begin_acquire(*wanted);
    departure leaving(*self, wanted);
    if (const step at_once = self->grant_at_once(wanted, now); at_once != step::again) {
        leaving.dismiss();
        lock granted = record::make_lock(std::move(wanted), std::move(self));
        if (at_once == step::yield)
            co_await asio::post(asio::deferred);
        co_return granted;
    }
    if (self->closed_to_new_.load())
        self->throw_shutting_down(*wanted);
    leaving.takes_time();
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    if (const auto ahead = self->answer_ahead(*wanted)) {
        if (const auto why = ahead->heard ? ahead->error : self->backend_->trouble())
            throw_failed(*why, self->context_of(*wanted));
        co_return std::nullopt;
    }
    if (!wanted->attempting.was_sent())
        self->send_single(wanted, now);
    parked place;
    std::optional<create_outcome> answer;
    for (;;) {
        std::uint32_t seen = 0;
        self->throw_if_inherited(*wanted);
        if (wanted->where() != phase::acquiring) {
            leaving.dismiss();
            co_return record::make_lock(std::move(wanted), std::move(self));
        }
        answer = self->take_answer(*wanted, seen);
        if (self->closed_to_new_.load())
            self->throw_shutting_down(*wanted);
        if (answer)
            break;
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        if (wanted->where() == phase::acquiring)
            co_await self->park(*wanted, place, seen);
    }
    if (answer->status == create_status::busy)
        co_return std::nullopt;
    // What was granted too late is given back by the departure.
    throw_failed(
        answer->status == create_status::failed ? *answer->error : *too_late_to_use(), self->context_of(*wanted));
}

void core::send_single(const record_ptr& wanted, time_point now)
{
    {
        const std::lock_guard guard(mutex_);
        static_cast<void>(begin_attempt(*wanted, now, true));
        trying_.push_back(*wanted);
    }
    send_attempt(wanted, false);
}

/// Else what was seen when there was none.
std::optional<create_outcome> core::take_answer(record& wanted, std::uint32_t& seen)
{
    const std::lock_guard guard(mutex_);
    seen = wanted.version;
    if (!std::exchange(wanted.outcome_ready, false))
        return std::nullopt;
    return std::move(wanted.outcome);
}

void core::throw_shutting_down(const record& wanted) const
{
    throw create_error(errc::shutting_down, context_of(wanted));
}

void core::throw_inherited(const record& wanted) const
{
    throw create_error(errc::forked, context_of(wanted));
}

void core::throw_refused(const record& wanted) const
{
    if (!wanted.refused)
        return;
    auto context = context_of(wanted);
    context.detail = wanted.refused->detail;
    throw validation_error(wanted.refused->code, std::move(context));
}

void core::prepare_token(const record& wanted) const
{
    if (!can_.immediate)
        static_cast<void>(wanted.token());
}

} // namespace colock::detail
