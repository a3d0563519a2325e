// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/cleanup_queue.hpp"
#include "core/state/deferred_actions.hpp"
#include "core/state/lease_table.hpp"
#include "core/state/shard.hpp"

#include <memory>

namespace colock::detail {

/// Tells those who wait, and the holders of what is held, that no acquire may begin any more. So many at a time that a
/// crowd does not hold up the loop.
class shutdown_notifier
{
public:
    enum class what : unsigned char
    {
        waiters,
        waiters_and_leases,
    };

    shutdown_notifier(shard& of, lease_table& held, cleanup_queue& ends) : shard_(of), leases_(held), cleanup_(ends) {}
    shutdown_notifier(const shutdown_notifier&) = delete;
    shutdown_notifier& operator=(const shutdown_notifier&) = delete;

    void owned_by(std::weak_ptr<core> owner) { owner_ = std::move(owner); }

    /// From now on nothing is granted. The first are told before it returns, and all of them whether or not anybody
    /// waits for that. Not under the mutex.
    void begin(what told);

    /// Tells those that have not been told yet. Not under the mutex.
    void go_on() { tell_in_parts(); }

    // The mutex is held.
    /// Not all have been told.
    [[nodiscard]] bool still_tells() const noexcept { return tells_; }
    /// A shutdown has begun, which ends what is held, too.
    [[nodiscard]] bool ends_leases() const noexcept { return ends_leases_; }
    /// There is nobody left to tell.
    void is_over() noexcept { tells_ = false; }

private:
    void tell_in_parts();
    [[nodiscard]] bool tell_part(deferred_actions& actions);

    shard& shard_;
    lease_table& leases_;
    cleanup_queue& cleanup_;
    std::weak_ptr<core> owner_;
    bool ends_leases_ = false;
    bool tells_ = false;
};

} // namespace colock::detail
