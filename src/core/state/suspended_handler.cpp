// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/suspended_handler.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

class suspended_handler::continuation
{
public:
    continuation(ptr target, error_code error) : target_(std::move(target)), error_(error) {}
    continuation(continuation&&) noexcept = default;
    continuation& operator=(continuation&&) = delete;
    ~continuation()
    {
        // Without memory to post, the handler is kept.
        if (target_ && target_->is_posted_)
            target_->destroy_handler();
    }
    void operator()()
    {
        const ptr kept = std::move(target_);
        kept->invoke_handler(error_);
    }

private:
    ptr target_;
    error_code error_;
};

void suspended_handler::resume(error_code error)
{
    // The function may have been called before.
    is_posted_ = false;
    if (COLOCK_DEFECT(throwing_callback))
        return asio::dispatch(executor(), continuation(this, error));
    asio::post(executor(), continuation(this, error));
    is_posted_ = true;
}

bool suspended_handler::remove_if_suspended() noexcept
{
    ptr removed;
    const std::lock_guard guard(owner_.mutex);
    if (is_suspended())
        removed = remove();
    return removed != nullptr;
}

void core::wake_later(suspended_handler& target) noexcept
{
    const std::lock_guard guard(mutex);
    intrusive_ptr_add_ref(&target);
    late_wakes.suspended.push_back(target);
    suspended.push_back(target);
    timers.schedule(late_wakes, lease_clock::now());
}

void core::assign_cancellation(asio::cancellation_slot slot, const suspended_handler::ptr& target)
{
    if (!slot.is_connected())
        return;
    // The slot may outlive the wait, the coroutine and the core.
    slot.assign([owner = weak_from_this(), target](asio::cancellation_type type) {
        if (type == asio::cancellation_type::none)
            return;
        if (const auto alive = owner.lock())
            alive->cancel_wait(*target);
    });
}

void core::suspend(const suspended_handler::ptr& target, condition& source, std::uint32_t seen, on_close closing)
{
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        const bool is_due = dead || (closing == on_close::end_wait && closed_to_new);
        intrusive_ptr_add_ref(target.get());
        source.suspended.push_back(*target);
        (closing == on_close::end_wait ? suspended_until_closed : suspended).push_back(*target);
        // After the guard is destroyed, another thread may resume the coroutine, whose frame keeps this core alive.
        if (!is_due && source.version == seen)
            return;
        actions.wakes.add(*target);
    }
    actions.run(*this);
}

void core::cancel_wait(suspended_handler& target)
{
    update([&](deferred_actions& actions) {
        target.is_cancelled = true;
        if (target.is_suspended())
            actions.wakes.add(target);
    });
}

} // namespace colock::inline v0::detail
