// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>
#include <colock/error.hpp>
#include <colock/spi/outcome.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace colock::inline v0 {

class adapter;
class observer;

/// Receives a notification when contact between an adapter and its backend is lost or regained, once for each change.
/// Implemented by the core.
class COLOCK_EXPORT contact_watcher
{
public:
    /// The backend cannot be reached any more, so held locks may be lost soon.
    virtual void on_contact_lost() noexcept = 0;
    /// Attempts that have failed may succeed now. Also called when the backend is reached for the first time after a
    /// failed attempt to connect.
    virtual void on_contact_regained() noexcept = 0;

protected:
    ~contact_watcher() = default;
};

/// Whether an adapter can reach its backend. The adapter states each change; this object decides which event follows,
/// and notifies the observers and the core. An adapter with several connections states the changes of their union:
/// `set_up` for the first that is open, `set_down` when the last is lost.
///
/// Without memory, an event may be repeated, and a failure may lack its description. No event is lost.
///
/// Thread safety: all members may be called from any thread, but not while a mutex is held that an observer or an
/// operation of the adapter locks.
class COLOCK_EXPORT contact
{
public:
    /// \param owner the adapter whose name is reported; must outlive this object
    explicit contact(const adapter& owner);
    contact(const contact&) = delete;
    contact& operator=(const contact&) = delete;
    ~contact();

    /// A connection to `address` is being established, and no other connection exists, so that no operation in flight
    /// has been sent. A caller that gives up meanwhile gets `errc::unavailable`. Observers are not notified.
    void set_connecting(std::string_view address) noexcept;
    /// No connection exists or is being established, because none is needed. Observers are not notified.
    void set_idle() noexcept;
    /// The backend can be reached. Ends the `connection_failure()`. Observers receive `ready` the first time, and
    /// `reconnected` after a `set_down`. They receive nothing after `set_idle`, or after `set_connecting` if nothing
    /// had failed.
    ///
    /// Must not be called again without `set_down`, `set_connecting`, `set_idle` or `report_unreachable` in between:
    /// observers would receive `reconnected` without a loss. An adapter that needs no connection calls this once, when
    /// it is made.
    /// \param connected_at the time at which the first connection was established; nothing can have been carried out
    ///     before. See `adapter::connected_at()`. Default: unknown, so that operations may have been sent before.
    void set_up(lease_clock::time_point connected_at = {}) noexcept;
    /// The backend cannot be reached. Called for a lost connection, and for each failed attempt to connect. `failure`
    /// is the new `connection_failure()`.
    ///
    /// If the backend was `set_up`, observers receive `suspended`. Otherwise they receive `unreachable`, once per
    /// address and cause (or code, if there is no cause) until the backend can be reached again. In both cases each
    /// held lock is at risk and renewals are due at once, if this is the first failure since the backend was `set_up`.
    /// \param address the address of the failed attempt
    void set_down(const failure_ptr& failure, std::string_view address = {}) noexcept;
    /// The connection was lost.
    void set_down(const error_code& error) noexcept;

    /// Reports a message for the operator. Each observer receives the same message once.
    void warn(std::string_view message) noexcept;
    /// Notifies observers that one of several servers cannot be reached, although the backend is up without it. The
    /// adapter itself must avoid repeated notifications.
    void report_unreachable(const error_code& error, std::string_view address, std::string_view detail) noexcept;

private:
    friend class adapter;
    struct state;

    // The functions of `adapter` with the same names.
    void attach(const std::shared_ptr<observer>& target);
    void watch(const std::shared_ptr<contact_watcher>& watcher);
    [[nodiscard]] failure_ptr connection_failure() const;
    [[nodiscard]] std::uint64_t reconnects() const noexcept;
    [[nodiscard]] lease_clock::time_point connected_at() const noexcept;
    void warn_of_refusal(const failure& failure) noexcept;

    template <class Selector, class Event>
    void notify(Selector is_selected, Event event) noexcept;

    const adapter& owner_;
    const std::unique_ptr<state> state_;
};

} // namespace colock::inline v0
