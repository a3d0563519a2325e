// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/lost_requests.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/spi/adapter.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::remote {

/// The event source of one key (a channel, a watch, a change stream) and its waiters.
///
/// Guarded by the mutex of its `wait_sources`, except where noted.
struct wait_source
{
    explicit wait_source(std::string source_name) : name(std::move(source_name)) {}

    struct waiter
    {
        const claim* waiting_claim;
        completion<wait_outcome> done;
        lease_clock::time_point since;
        connection_number checked_on;
    };
    const std::string name;
    /// Incremented by every event, and whenever the subscription becomes active again: the key may have changed since
    /// it was read. Read without the mutex.
    std::atomic<std::uint64_t> changes{1};
    std::vector<waiter> waiters{};
    std::size_t user_count = 0;
    lease_clock::time_point unused_since{};
    /// Whether the source is in the list of sources that are checked for being unused.
    bool lingers = false;
    /// Rounds in which the subscription was last requested and last became active.
    std::uint64_t requested_round = 0;
    std::uint64_t active_round = 0;
    /// Whether the server has refused or ended the subscription, and is asked again when a caller waits.
    bool is_ended = false;
    /// Value of `changes` after the last call of `activate_unchanged`. Waiters that had checked the key in the
    /// connection or session `confirmed_in` did not have to check again.
    std::uint64_t confirmed = 0;
    connection_number confirmed_in = 0;
    /// Revision of the key that the server reported when the subscription was last requested; 0: none.
    std::uint64_t revision = 0;
    /// Position in the list of sources that were requested in this round, or in the list of all others.
    std::list<std::shared_ptr<wait_source>>::iterator place{};
    /// Position in the map of all sources, valid while `known` is true.
    std::map<std::string_view, std::shared_ptr<wait_source>>::iterator entry{};
    bool known = false;
};

/// Manages the event sources of all keys. A source is created on first use, shared by all waiters of its key, and
/// removed after it has been unused for a while. The class decides which sources must be subscribed at the server,
/// which need no subscription any more, and which waits end.
///
/// Waiters must check the lock again after a subscription has become active, because earlier events were missed. If
/// events are not available (polling), a wait ends after a certain time.
///
/// Scales to 100,000 sources: only `drop_all` iterates over all of them, and other bulk work is returned in parts. Does
/// no I/O and reads no clock. Completions are returned to the caller, never called here. Thread safety: safe.
class wait_sources
{
public:
    using source_ptr = std::shared_ptr<wait_source>;
    using completions = std::vector<completion<wait_outcome>>;

    /// Adds a user of a source. Returns the source and the event counter, to be passed to `wait`.
    [[nodiscard]] std::pair<source_ptr, std::uint64_t> add_user(const std::string& name);
    /// Removes a user of a source. `now` starts the time after which an unused source is removed.
    void remove_user(wait_source& source, lease_clock::time_point now) noexcept;
    /// Stores `done` until the event counter differs from `seen`. Returns false if it already does.
    /// \param checked_on the connection or session in which the caller checked the key; 0: unspecified
    /// \param polls whether the wait is recorded by age although polling is off
    [[nodiscard]] bool wait(const source_ptr& source, const claim& waiting_claim, std::uint64_t seen,
        lease_clock::time_point now, connection_number checked_on, completion<wait_outcome>& done, bool polls = false);
    /// Cancels a wait. Returns false if the claim was not waiting.
    bool cancel_wait(const wait_source& source, const claim& waiting_claim) noexcept;
    /// Returns whether the subscription of the source is active.
    [[nodiscard]] bool is_active(const wait_source& source) const noexcept;
    /// Returns the revision that was last passed to `activate_for`. 0 if there is none, or if the subscription is not
    /// active now.
    [[nodiscard]] std::uint64_t revision(const wait_source& source) const noexcept;

    [[nodiscard]] bool empty() const noexcept;
    /// Returns whether the subscription of that key is active.
    [[nodiscard]] bool is_active(const std::string& name) const;

    /// Returns up to `max_count` sources whose subscription was not requested in this round, and marks them as
    /// requested.
    [[nodiscard]] std::vector<source_ptr> take_unrequested(std::size_t max_count);
    /// Marks the subscriptions as active. Returns the completions of all waiters, which must check the lock again.
    [[nodiscard]] completions activate(const std::vector<source_ptr>& sources);
    /// Like `activate`, if the server has confirmed that the key has not changed since it was checked in that
    /// connection or session. Only the other waiters must check again.
    [[nodiscard]] completions activate_unchanged(const source_ptr& source, connection_number checked_on);
    /// Like `activate`, if the server has reported the state of the key. A waiter that had checked the key in that
    /// connection or session must check again only if `concerns` returns true for its claim. All other waiters must
    /// check again, and so must a caller that checked before this call and waits after it.
    [[nodiscard]] completions activate_for(const source_ptr& source, connection_number checked_on,
        std::uint64_t revision, const std::function<bool(const claim&)>& concerns);
    /// Returns the completions of the waiters of these sources.
    [[nodiscard]] completions wake(const std::vector<source_ptr>& sources);
    /// Returns the completions of the waiters of these keys.
    [[nodiscard]] completions wake_keys(const std::vector<std::string>& names);
    /// Returns the completions of the waiters of the keys for which `is_woken` returns true.
    [[nodiscard]] completions wake_if(const std::function<bool(std::string_view)>& is_woken);
    /// Like `wake_keys`, for subscriptions that deliver only one event. They become inactive until the server is asked
    /// again.
    [[nodiscard]] completions deactivate_and_wake(const std::vector<std::string>& names);
    /// Marks the subscription as active, or as refused or ended by the server. Returns the completions of the waiters,
    /// which must check the lock again. After a refusal, the server is asked again when a caller waits, and not before.
    [[nodiscard]] completions set_active(const std::string& name, bool is_active);
    /// Marks the subscription as inactive until the server is asked again, without ending the waits. Returns whether
    /// the source has users.
    [[nodiscard]] bool deactivate(const std::string& name);
    /// Starts a new round after a new connection was established. No source counts as requested any more.
    void begin_round() noexcept;

    struct unused
    {
        /// The removed sources that were requested in this round. Their subscriptions can be cancelled.
        std::vector<std::string> requested{};
        /// Whether more sources can be removed now.
        bool more = false;
    };
    /// Removes up to `max_count` sources that have been unused for the time `linger`.
    [[nodiscard]] unused forget_unused(
        lease_clock::time_point now, lease_clock::duration linger, std::size_t max_count);

    /// Switches polling on or off. While polling is on, waits are recorded by age.
    void set_polling(bool polls);
    /// Returns the completions of up to `max_count` waits that began at `before` or earlier.
    [[nodiscard]] completions take_due(lease_clock::time_point before, std::size_t max_count);

    /// Returns all completions, which must be destroyed without being called, and removes all sources.
    [[nodiscard]] completions drop_all() noexcept;

private:
    struct timestamped_source
    {
        lease_clock::time_point since;
        source_ptr source;
    };
    static void take_waiters(wait_source& source, completions& result);
    void mark_inactive(wait_source& source);
    void forget(wait_source& source);

    mutable colock::detail::light_mutex mutex_;
    /// All sources by name. A map and not a hash table, because a growing hash table would move all elements at once.
    std::map<std::string_view, source_ptr> known_;
    std::list<source_ptr> unrequested_;
    std::list<source_ptr> requested_;
    std::uint64_t round_ = 1;
    /// Unused sources, in the order in which they are checked.
    std::deque<timestamped_source> lingering_;
    bool polls_ = false;
    std::deque<timestamped_source> waits_;
};

/// Calls the completions of waits.
inline void wake_all(wait_sources::completions completions)
{
    for (auto& each : completions)
        each(wait_outcome{});
}

/// A subscription to an event source, which lasts as long as this object.
class source_subscription
{
public:
    /// \param sources kept alive by this object
    source_subscription(std::shared_ptr<wait_sources> sources, const std::string& name);
    source_subscription(source_subscription&&) noexcept = default;
    source_subscription& operator=(source_subscription&&) = delete;
    ~source_subscription();

    /// Marks all changes until now as seen. Call this before the lock is checked.
    void mark_as_seen() noexcept { seen_ = watched_->changes.load(std::memory_order_acquire); }
    /// Starts a wait. Returns false if the key has changed since `mark_as_seen`; `done` is then unchanged.
    [[nodiscard]] bool wait(const claim& waiting_claim, completion<wait_outcome>& done,
        connection_number checked_on = 0, bool polls = false);
    /// Cancels a wait. Returns false if an event had already ended it.
    bool cancel_wait(const claim& waiting_claim) const noexcept
    {
        return sources_->cancel_wait(*watched_, waiting_claim);
    }
    [[nodiscard]] bool is_active() const noexcept { return sources_->is_active(*watched_); }
    [[nodiscard]] std::uint64_t revision() const noexcept { return sources_->revision(*watched_); }

private:
    std::shared_ptr<wait_sources> sources_;
    std::shared_ptr<wait_source> watched_;
    std::uint64_t seen_ = 0;
};

} // namespace colock::inline v0::remote
