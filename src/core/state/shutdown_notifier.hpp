// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/deferred_actions.hpp"

namespace colock::inline v0::detail {

/// Ends the waiters, and on request the held locks, when no acquire may begin any more. Works in batches, so that many
/// waiters do not block the event loop.
class shutdown_notifier
{
public:
    explicit shutdown_notifier(core& owner) : core_(owner) {}
    shutdown_notifier(const shutdown_notifier&) = delete;
    shutdown_notifier& operator=(const shutdown_notifier&) = delete;

    // The mutex must not be held for these functions.
    /// Closes the locker: nothing is granted from now on. Ends the first batch of the waiters before it returns, and
    /// posts the others.
    void end_waiters() { begin(false); }
    /// Like `end_waiters`, and also ends the held locks.
    void end_waiters_and_leases() { begin(true); }
    /// Continues at once with the batches that are left, if there are any.
    void notify_remaining();
    /// Notifies `drained`.
    void notify_drained();

    // The mutex must be held for these functions.
    /// Returns the condition that a shutdown waits on. Notified when the last waiter, held lock, acquire or release may
    /// have ended.
    [[nodiscard]] condition& drained() noexcept { return drained_; }
    /// Whether some waiters or leases have not been notified yet.
    [[nodiscard]] bool is_notifying() const noexcept { return is_notifying_; }
    /// Whether a shutdown has begun that also ends the held locks.
    [[nodiscard]] bool ends_leases() const noexcept { return ends_leases_; }

private:
    void begin(bool ends_leases);
    [[nodiscard]] bool notify_batch(deferred_actions& actions);

    core& core_;
    condition drained_;
    bool ends_leases_ = false;
    bool is_notifying_ = false;
};

} // namespace colock::inline v0::detail
