// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include "core/state/waiter.hpp"

#include <boost/intrusive/set.hpp>

#include <memory>
#include <optional>

namespace colock::detail {

/// What is due when, and the one timer that tells the first of it.
///
/// Thread safety: none; guarded by the shard's mutex.
class timer_heap
{
public:
    using time_point = lease_clock::time_point;

    /// \param backend on whose executor the timer runs.
    explicit timer_heap(const adapter& backend) : backend_(backend), answers_at_once_(backend.capabilities().immediate)
    {
    }
    timer_heap(const timer_heap&) = delete;
    timer_heap& operator=(const timer_heap&) = delete;

    /// Whom the timer calls, on the executor; weak, so that an armed timer keeps nobody.
    /// \tparam Fired something is due
    /// \tparam Unused nothing was due any more a moment ago: it calls `disarm_if_unused`
    template <auto Fired, auto Unused, class Owner>
    void tell(const std::shared_ptr<Owner>& owner)
    {
        owner_ = owner;
        fire_ = [](void* told) { (static_cast<Owner*>(told)->*Fired)(); };
        unused_ = [](void* told) { (static_cast<Owner*>(told)->*Unused)(); };
    }

    /// time_point::max(): not at all.
    void schedule(condition& source, time_point due);
    /// An armed timer keeps io_context::run() from returning. While somebody waits, that is as it should be, and the
    /// next one to wait need not arm it again.
    void keep_armed(bool keep);

    /// By the owner, when the timer has fired: it takes what is due, and arms it again.
    void has_fired() noexcept { armed_for_ = time_point::max(); }
    /// The next that is due, taken out; null if there is none.
    [[nodiscard]] condition* take_due(time_point now);
    void arm();
    /// Cancels the timer if nothing is due.
    void disarm_if_unused();

    /// Forgets everything, for good. The timer is to be destroyed without the mutex.
    [[nodiscard]] std::optional<lease_timer> stop() noexcept;

private:
    using heap = boost::intrusive::multiset<condition,
        boost::intrusive::base_hook<
            boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>>>;

    void take_out(condition& first) noexcept;
    void disarm_soon();

    const adapter& backend_;
    const bool answers_at_once_;
    std::weak_ptr<void> owner_;
    void (*fire_)(void*) = nullptr;
    void (*unused_)(void*) = nullptr;
    heap due_;
    std::optional<lease_timer> timer_;
    time_point armed_for_ = time_point::max();
    bool kept_ = false;
    /// A call of `disarm_if_unused` has been posted.
    bool is_disarming_ = false;
    bool stopped_ = false;
};

} // namespace colock::detail
