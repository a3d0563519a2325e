// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"
#include "core/unscheduled.hpp"
#include "core/validation.hpp"

#include <boost/asio/error.hpp>

#include <iterator>

namespace colock::detail {

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
    for (record& held : leases_.all()) {
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
