// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/context_member.hpp>
#include <colock/testing/scripted_adapter.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

constexpr std::size_t index_of(operation kind)
{
    return static_cast<std::size_t>(kind);
}

/// A record of an operation that the core started.
struct scripted_adapter::call
{
    operation what{};
    /// For hand_over: the key of the claim that is released. For create_all: all keys, separated by commas. For group:
    /// the id.
    std::string key{};
    colock::token token{};
    /// For extend: the new TTL. For close: the deadline. Otherwise: the TTL of the claim.
    std::chrono::milliseconds ttl{0};
    /// State of the claim when the operation was started; for hand_over, of the claim that is released.
    lease_clock::time_point operation_start{};
    bool in_doubt = false;
};

/// Destroys the held requests when the context is destroyed: their completions may own objects that must not outlive
/// it.
struct scripted_adapter::state : context_member
{
    struct request
    {
        operation kind;
        std::vector<claim_ptr> claims;
        std::function<void(scripted_adapter&)> deliver;
        std::function<void(scripted_adapter&)> discard;

        [[nodiscard]] bool concerns(const colock::claim& other) const noexcept
        {
            return std::ranges::any_of(claims, [&](const auto& each) { return each.get() == &other; });
        }
    };

    void context_shutdown() noexcept override
    {
        std::deque<request> dropped;
        std::map<const colock::claim*, claim_ptr> waits;
        const std::lock_guard guard(mutex);
        dropped.swap(held);
        waits.swap(waiting);
        under_way.clear();
    }

    /// Removes and returns the oldest request that is held back.
    std::optional<request> take_held()
    {
        const std::lock_guard guard(mutex);
        if (held.empty())
            return {};
        auto first = std::move(held.front());
        held.pop_front();
        return first;
    }

    /// Requires that the mutex is held.
    void begin_operation(const colock::claim& subject, operation kind)
    {
        const auto breach = [&](const std::string& text) {
            breaches.push_back(subject.key() + ": " + to_string(kind) + " started " + text);
        };
        if (const auto other = under_way.find(&subject); other != under_way.end())
            breach(std::string("while ") + to_string(other->second) + " is under way");
        if (waiting.contains(&subject))
            breach("before its wait had ended or was cancelled");
        if (kind != operation::wait)
            under_way[&subject] = kind;
    }
    void end_operation(const std::vector<claim_ptr>& done)
    {
        const std::lock_guard guard(mutex);
        for (const auto& subject : done)
            under_way.erase(subject.get());
    }
    void end_wait(const colock::claim* subject)
    {
        claim_ptr last;
        const std::lock_guard guard(mutex);
        if (const auto found = waiting.find(subject); found != waiting.end()) {
            last = std::move(found->second);
            waiting.erase(found);
        }
    }

    mutable std::mutex mutex;
    std::array<std::deque<step>, operation_count> queued;
    std::array<std::function<step()>, operation_count> repeated;
    std::vector<call> calls;
    std::deque<request> held;
    bool is_disconnected = false;
    bool trust_abandon = false;
    std::map<const colock::claim*, operation> under_way;
    std::map<const colock::claim*, claim_ptr> waiting;
    std::vector<std::string> breaches;
    std::shared_ptr<session_lease> session;

    [[nodiscard]] std::shared_ptr<session_lease> current_session() const
    {
        const std::lock_guard guard(mutex);
        return session;
    }
};

/// One operation between the core and the backend.
template <class Outcome>
struct scripted_adapter::pending_call
{
    operation kind;
    step behavior;
    /// Claims of the request, for the contract of `abandon`.
    std::vector<claim_ptr> claims;
    std::function<void(adapter&, completion<Outcome>)> send;
    completion<Outcome> done;
    /// The state in which this operation is recorded as the current one of the claims in `busy_claims`.
    std::shared_ptr<state> record_in;
    std::vector<claim_ptr> busy_claims;

    void answer(Outcome outcome)
    {
        if (behavior.after_)
            behavior.after_();
        if (record_in)
            record_in->end_operation(busy_claims);
        if constexpr (std::is_same_v<Outcome, release_outcome>)
            outcome.others_wait = outcome.others_wait || behavior.others_wait_;
        else if constexpr (std::is_same_v<Outcome, hand_over_outcome>)
            outcome.released.others_wait = outcome.released.others_wait || behavior.others_wait_;
        done(std::move(outcome));
    }
};

} // namespace colock::testing
