// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/acquire_step.hpp"
#include "core/core.hpp"
#include "core/departure.hpp"
#include "core/failures.hpp"
#include "core/verbs.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <optional>

namespace colock::detail::verbs {

namespace {

/// Checks what can be wrong before anything is asked; returns when it began.
lease_clock::time_point begin_acquire(const core& self, record& wanted)
{
    throw_if_refused(self, wanted);
    throw_if_inherited(self, wanted);
    prepare_token(self, wanted);
    return wanted.started = lease_clock::now();
}

/// Readers do not exclude each other: one may ask while those before it are being answered for the first time. Those
/// who have been told to wait are not overtaken.
bool asks_beside(const record& wanted, const key_queue& queue)
{
    const auto is_asking_reader = [](const record& member) {
        return member.mode() == lock_mode::shared && member.under_way == operation::create && member.attempts_made == 0;
    };
    return wanted.mode() == lock_mode::shared && !queue.holder &&
           std::all_of(queue.members.begin(), queue.members.end(), is_asking_reader);
}

/// To those who are queued before it; nothing if there are none.
std::optional<last_answer> answer_ahead(core& self, const record& wanted, lease_clock::time_point now)
{
    if (!self.queues.may_have(wanted.key_hash()))
        return std::nullopt;
    const std::lock_guard guard(self.mutex);
    const key_queue* const queue = self.queues.find(wanted);
    if (!queue || asks_beside(wanted, *queue))
        return std::nullopt;
    return answer_to_first(self, *queue, now);
}

void send_single(core& self, const record::ptr& wanted, lease_clock::time_point now)
{
    {
        const std::lock_guard guard(self.mutex);
        static_cast<void>(begin_attempt(*wanted, now, true));
        self.trying.push_back(*wanted);
    }
    send_attempt(self, wanted, false);
}

/// Else what was seen when there was none.
std::optional<create_outcome> take_answer(core& self, record& wanted, std::uint32_t& seen)
{
    const std::lock_guard guard(self.mutex);
    seen = wanted.version;
    if (!std::exchange(wanted.outcome_ready, false))
        return std::nullopt;
    return std::move(wanted.outcome());
}

} // namespace

asio::awaitable<lock> acquire(std::shared_ptr<core> self, record::ptr wanted)
{
    const auto now = begin_acquire(*self, *wanted);
    // Counted from before the first look at whether the locker is closed: a shutdown that has begun since waits for it.
    departure leaving(*self, wanted);
    step next = grant_at_once(*self, wanted, now);
    if (next == step::granted) {
        leaving.dismiss();
        co_return record::make_lock(std::move(wanted), std::move(self));
    }
    if (self->closed_to_new.load())
        throw_shutting_down(*self, *wanted);
    leaving.takes_time();
    // One that is not thrown by itself is only recorded; nothing is sent after it.
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    retry_schedule schedule(wanted->own_policy ? *wanted->own_policy : self->options.retry, now);
    parked place;
    place.ends_when_closed = true;
    for (std::optional known(now);; known.reset()) {
        std::uint32_t seen = 0;
        if (next == step::again)
            next = next_step(*self, wanted, schedule, known, seen);
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
            // Nor is anything waited for.
            if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
                throw boost::system::system_error(asio::error::operation_aborted);
            co_await self->park(*wanted, place, seen);
            next = step::again;
            break;
        }
    }
}

asio::awaitable<std::optional<lock>> try_acquire(std::shared_ptr<core> self, record::ptr wanted)
{
    const auto now = begin_acquire(*self, *wanted);
    departure leaving(*self, wanted);
    if (const step at_once = grant_at_once(*self, wanted, now); at_once != step::again) {
        leaving.dismiss();
        lock granted = record::make_lock(std::move(wanted), std::move(self));
        if (at_once == step::yield)
            co_await asio::post(asio::deferred);
        co_return granted;
    }
    if (self->closed_to_new.load())
        throw_shutting_down(*self, *wanted);
    leaving.takes_time();
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    if (const auto ahead = answer_ahead(*self, *wanted, now)) {
        if (const auto why = why_not_busy(*self, *ahead, "the backend does not answer the caller that is first"))
            throw_failed(*why, context_of(*self, *wanted));
        co_return std::nullopt;
    }
    if (!wanted->attempting.was_sent())
        send_single(*self, wanted, now);
    parked place;
    std::optional<create_outcome> answer;
    for (;;) {
        std::uint32_t seen = 0;
        throw_if_inherited(*self, *wanted);
        if (wanted->where() != phase::acquiring) {
            leaving.dismiss();
            co_return record::make_lock(std::move(wanted), std::move(self));
        }
        answer = take_answer(*self, *wanted, seen);
        if (self->closed_to_new.load())
            throw_shutting_down(*self, *wanted);
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
        answer->status == create_status::failed ? *answer->error : *too_late_to_use(), context_of(*self, *wanted));
}

} // namespace colock::detail::verbs
