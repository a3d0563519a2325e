// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/operations/operation_errors.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/core.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace colock::inline v0::detail {

/// The answer to a request that is not about one claim. Notified when the answer arrives.
template <class Outcome>
struct answer_state : condition
{
    std::optional<Outcome> outcome;
    /// Whether nobody waits for the outcome any more.
    bool is_abandoned = false;
};

/// Sends a request that is not about one claim: a query, a break, a purge, or an operation on a group. Returns the
/// backend's answer, or an error that says why there was no answer in time. The request continues if its caller is
/// destroyed.
/// \param on_answer called with the answer, whether or not the caller still waits for it
template <class Outcome>
[[nodiscard]] asio::awaitable<Outcome> request_answer(std::shared_ptr<core> self,
    std::function<void(adapter&, completion<Outcome>)> start,
    std::function<void(core&, const Outcome&)> on_answer = nullptr)
{
    const auto began = lease_clock::now();
    auto state = std::make_shared<answer_state<Outcome>>();
    start(*self->backend, [state, on_answer = std::move(on_answer), weak = self->weak_from_this()](Outcome outcome) {
        const auto alive = weak.lock();
        if (!alive)
            return;
        if (outcome.error)
            alive->complete_failure(outcome.error);
        if (on_answer)
            on_answer(*alive, outcome);
        alive->update([&](deferred_actions& actions) {
            if (!state->is_abandoned)
                state->outcome = std::move(outcome);
            state->notify(actions.wakes);
        });
    });
    co_await wait_until(*self, *state, self->answer_deadline(began),
        [&] { return state->outcome.has_value() || self->is_backend_gone(); });
    std::optional<Outcome> answer;
    {
        const std::lock_guard guard(self->mutex);
        // An answer after the timeout is ignored.
        state->is_abandoned = true;
        answer = std::move(state->outcome);
    }
    if (!answer)
        answer.emplace().error = unanswered(*self);
    co_return std::move(*answer);
}

} // namespace colock::inline v0::detail
