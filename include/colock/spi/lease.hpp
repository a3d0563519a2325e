// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace colock::inline v0 {

/// The time until which a session of the backend certainly lives. There is one object per session, shared by all leases
/// that are tied to the session. The adapter extends the time with each proof that the session is alive.
///
/// Once the time has passed, the session counts as ended forever. A lease that was seen to end is therefore never seen
/// to be valid again. If the adapter resumes the session, it makes a new object for later grants.
///
/// Thread safety: all members may be called from any thread.
class COLOCK_EXPORT session_lease
{
public:
    /// Time point of lease_clock.
    using time_point = lease_clock::time_point;

    /// Receives a notification when a session ends, once for all leases of the session. Implemented by the core, which
    /// knows the leases that are tied to the session.
    class watcher
    {
    public:
        /// Called once, after the session has ended, on the thread that has detected the end.
        virtual void on_session_ended(const session_lease& session) noexcept = 0;

    protected:
        ~watcher() = default;
    };

    /// Makes the lease of a session that is known to be alive until this time.
    /// \param on_unused called each time that the last claim of the session has ended: it holds no lock, none of its
    ///     operations is in progress, and neither the core nor a lock object refers to it. Called on the thread that
    ///     ends the claim; must not throw. Another thread may tie a new claim meanwhile: check `is_used()` before the
    ///     session is closed.
    explicit session_lease(time_point until, std::function<void()> on_unused = {}) noexcept
        : until_(until.time_since_epoch().count()), on_unused_(std::move(on_unused))
    {
    }
    session_lease(const session_lease&) = delete;
    session_lease& operator=(const session_lease&) = delete;

    /// Returns the time until which the session lives, or time_point::min() after it has ended.
    [[nodiscard]] time_point valid_until() const noexcept
    {
        return time_point(lease_clock::duration(until_.load(std::memory_order_acquire)));
    }
    /// Returns whether the session has ended at `now`. If it has, the end is final.
    [[nodiscard]] bool has_ended(time_point now) noexcept;

    /// Called by the adapter when the session certainly lives until the given time. An earlier time than the known one
    /// has no effect. Returns false if the session had ended before; all its leases are lost, and the watchers have
    /// been notified.
    [[nodiscard]] bool extend(time_point until) noexcept;
    /// Called by the adapter when the session has ended, whatever time was known.
    void end() noexcept;

    /// Registers a watcher. Keeps a weak reference.
    void watch(const std::shared_ptr<watcher>& target);
    /// Returns whether a claim is tied to the session and has not ended.
    [[nodiscard]] bool is_used() const noexcept { return users_.load(std::memory_order_acquire) != 0; }

private:
    friend class lease;
    void add_user() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void remove_user() noexcept
    {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1 && on_unused_)
            on_unused_();
    }
    [[nodiscard]] std::vector<std::shared_ptr<watcher>> watchers();
    void notify_ended() noexcept;

    static constexpr lease_clock::rep over = time_point::min().time_since_epoch().count();
    std::atomic<lease_clock::rep> until_;
    std::atomic<std::size_t> users_{0};
    const std::function<void()> on_unused_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<watcher>> watchers_;
};

/// The time until which a grant is valid: the earlier of two bounds. The core sets the ttl bound after grants and
/// extensions. An adapter whose backend ties locks to a session ties the lease to the session's (default: to none).
///
/// Thread safety: all members may be called from any thread, but `tie` only before the claim is granted.
class COLOCK_EXPORT lease
{
public:
    /// Time point of lease_clock.
    using time_point = lease_clock::time_point;

    lease() = default;
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { tie(nullptr); }

    /// Returns the earlier of the two bounds.
    [[nodiscard]] time_point valid_until() const noexcept
    {
        const auto ttl = ttl_bound();
        const auto session = session_until();
        return ttl < session ? ttl : session;
    }
    /// Returns the time until which the session lives; `time_point::max()` without a session, `time_point::min()` after
    /// it has ended.
    [[nodiscard]] time_point session_until() const noexcept
    {
        return session_ ? session_->valid_until() : time_point::max();
    }
    /// Returns whether the lease has ended at `now`. If the session has ended by then, its end is final.
    [[nodiscard]] bool has_ended(time_point now) const noexcept
    {
        return now >= ttl_bound() || (session_ && session_->has_ended(now));
    }

    /// Sets the ttl bound. Called by the core.
    void set_ttl_bound(time_point bound) noexcept
    {
        ttl_.store(bound.time_since_epoch().count(), std::memory_order_release);
    }
    /// Returns the ttl bound; `time_point::max()` for a grant without ttl.
    [[nodiscard]] time_point ttl_bound() const noexcept
    {
        return time_point(lease_clock::duration(ttl_.load(std::memory_order_acquire)));
    }

    /// Called by the adapter before it reports the grant: sets the session to which the grant belongs.
    void tie(std::shared_ptr<session_lease> session) noexcept
    {
        if (session)
            session->add_user();
        session.swap(session_);
        if (session)
            session->remove_user();
    }
    /// Returns the session to which the grant belongs, or null.
    [[nodiscard]] const std::shared_ptr<session_lease>& session() const noexcept { return session_; }

private:
    static constexpr lease_clock::rep never = time_point::max().time_since_epoch().count();
    std::atomic<lease_clock::rep> ttl_{never};
    std::shared_ptr<session_lease> session_;
};

} // namespace colock::inline v0
