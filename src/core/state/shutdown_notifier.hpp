// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/deferred_actions.hpp"

namespace colock::inline v0::detail {

/// Ends the waiters, and on request the held locks, when no acquire may begin any more. Works in batches, so that many
/// waiters do not block the event loop.
class shutdown_notifier
{
public:
    /// Selects what is notified.
    enum class scope : unsigned char
    {
        waiters,
        waiters_and_leases,
    };

    explicit shutdown_notifier(core& owner) : core_(owner) {}
    shutdown_notifier(const shutdown_notifier&) = delete;
    shutdown_notifier& operator=(const shutdown_notifier&) = delete;

    /// Closes the locker: nothing is granted from now on. Notifies the first batch before it returns. The other batches
    /// follow even if nobody waits for them. The mutex must not be held.
    void begin(scope notified);

    /// Notifies the next batch of the waiters and leases, and posts the others. The mutex must not be held.
    void notify_remaining();

    // The mutex must be held for these functions.
    /// Whether some waiters or leases have not been notified yet.
    [[nodiscard]] bool is_notifying() const noexcept { return is_notifying_; }
    /// Whether a shutdown has begun that also ends the held locks.
    [[nodiscard]] bool ends_leases() const noexcept { return ends_leases_; }

private:
    [[nodiscard]] bool notify_batch(deferred_actions& actions);

    core& core_;
    bool ends_leases_ = false;
    bool is_notifying_ = false;
};

} // namespace colock::inline v0::detail
