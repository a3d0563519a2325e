// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace colock {

/// How long a session of the backend's lives for certain: one object per session, shared by all leases that are tied to
/// it. Its adapter raises it with each proof that the session lives. Once it has passed, it stays passed: who has seen
/// a lease end does not see it stand again, and a session that comes back brings a new object for later grants.
///
/// Thread safety: all members may be called from any thread.
class session_bound
{
public:
    using time_point = lease_clock::time_point;

    /// Who is told about all leases of a session at once: the core, which knows which of its own are tied to it.
    class watcher
    {
    public:
        virtual void on_session_ended(const session_bound& session) noexcept = 0;

    protected:
        ~watcher() = default;
    };

    explicit session_bound(time_point until) noexcept : until_(until.time_since_epoch().count()) {}
    session_bound(const session_bound&) = delete;
    session_bound& operator=(const session_bound&) = delete;

    /// time_point::min() once it has ended.
    [[nodiscard]] time_point valid_until() const noexcept
    {
        return time_point(lease_clock::duration(until_.load(std::memory_order_acquire)));
    }
    /// Whether it has passed by `now`; if so, for good.
    [[nodiscard]] bool has_ended(time_point now) noexcept;

    /// By the adapter: it is certain to live until then; an earlier moment than is known changes nothing. False if it
    /// had passed meanwhile: every lease of it is lost, and those who watch have been told.
    [[nodiscard]] bool raise(time_point until) noexcept;
    /// By the adapter: it is over, whatever was known.
    void end() noexcept;

    /// Kept weakly.
    void watch(const std::shared_ptr<watcher>& who);

private:
    [[nodiscard]] std::vector<std::shared_ptr<watcher>> watchers();
    void tell_ended() noexcept;

    static constexpr lease_clock::rep over = time_point::min().time_since_epoch().count();
    std::atomic<lease_clock::rep> until_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<watcher>> watchers_;
};

/// How long a grant is good for: the smaller of two bounds. *ttl* is set by the core from grants and extensions,
/// *session* by an adapter whose backend ties locks to a session (default: never).
///
/// Thread safety: all members may be called from any thread; `tie` only before the claim is granted.
class lease
{
public:
    using time_point = lease_clock::time_point;

    [[nodiscard]] time_point valid_until() const noexcept
    {
        const auto ttl = ttl_bound();
        const auto session = session_until();
        return ttl < session ? ttl : session;
    }
    [[nodiscard]] time_point session_until() const noexcept
    {
        return session_ ? session_->valid_until() : time_point::max();
    }
    /// Whether it is over by `now`; a session that has passed by then has for good.
    [[nodiscard]] bool has_ended(time_point now) const noexcept
    {
        return now >= ttl_bound() || (session_ && session_->has_ended(now));
    }

    void set_ttl_bound(time_point bound) noexcept
    {
        ttl_.store(bound.time_since_epoch().count(), std::memory_order_release);
    }
    [[nodiscard]] time_point ttl_bound() const noexcept
    {
        return time_point(lease_clock::duration(ttl_.load(std::memory_order_acquire)));
    }

    /// By the adapter, before it tells of the grant: the session that carries it.
    void tie(std::shared_ptr<session_bound> session) noexcept { session_ = std::move(session); }
    [[nodiscard]] const std::shared_ptr<session_bound>& session() const noexcept { return session_; }

private:
    static constexpr lease_clock::rep never = time_point::max().time_since_epoch().count();
    std::atomic<lease_clock::rep> ttl_{never};
    std::shared_ptr<session_bound> session_;
};

} // namespace colock
