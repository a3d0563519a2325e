// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>
#include <colock/spi/completion.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace colock::inline v0::memory {

/// Reserves memory for at least one more element. Doubles the capacity, because growing by one element would move all
/// elements each time.
template <class Sequence>
void make_room(Sequence& in)
{
    if (in.size() == in.capacity())
        in.reserve(2 * in.size() + 1);
}

/// The actions that a call performs after it has unlocked the mutex: calling completions and `claim::lost`, and
/// dropping references to claims. Each of these may call back into the store. Declare this object before the guard of
/// the mutex, so that it is destroyed, and performs the actions, after the unlock.
class store_actions
{
public:
    store_actions() = default;
    store_actions(const store_actions&) = delete;
    store_actions& operator=(const store_actions&) = delete;
    ~store_actions()
    {
        if (!calls_)
            return;
        for (auto& claim : calls_->broken)
            claim->lost(lost_reason::broken);
        for (auto& wake : calls_->to_wake)
            wake(wait_outcome{});
    }

    // Memory is reserved before anything is changed, because the reservation may throw. If memory ran out later,
    // objects would be destroyed while the mutex is locked.

    void make_room_for_claim()
    {
        if (claim_)
            make_room(more_claims_);
    }
    void make_room_for_call()
    {
        if (!calls_)
            calls_ = std::make_unique<callbacks>();
        make_room(calls_->dropped);
        make_room(calls_->broken);
        make_room(calls_->to_wake);
    }

    void wake(completion<wait_outcome> waiting) noexcept { calls_->to_wake.push_back(std::move(waiting)); }
    void break_claim(claim_ptr claim) noexcept { calls_->broken.push_back(std::move(claim)); }
    void drop(claim_ptr claim) noexcept
    {
        if (claim_)
            more_claims_.push_back(std::move(claim));
        else
            claim_ = std::move(claim);
    }
    void drop(completion<wait_outcome> waiting) noexcept { calls_->dropped.push_back(std::move(waiting)); }

private:
    /// Actions that only a contended or a broken lock needs.
    struct callbacks
    {
        std::vector<completion<wait_outcome>> dropped;
        std::vector<claim_ptr> broken;
        std::vector<completion<wait_outcome>> to_wake;
    };
    /// The first claim whose reference is dropped. An uncontended release drops only this one.
    claim_ptr claim_;
    std::vector<claim_ptr> more_claims_;
    std::unique_ptr<callbacks> calls_;
};

} // namespace colock::inline v0::memory
