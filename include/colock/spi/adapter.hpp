// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/capabilities.hpp>
#include <colock/spi/claim.hpp>
#include <colock/spi/completion.hpp>
#include <colock/spi/outcome.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock {

namespace detail {
class executor_cell;
}
class observer;

/// Receives the loss and the return of contact between an adapter and its backend, each change once. The core
/// implements this.
class contact_watcher
{
public:
    /// The backend cannot be reached any more: held locks may be lost soon.
    virtual void on_contact_lost() noexcept = 0;
    /// Attempts that have failed may succeed now. Also called when the backend is reached for the first time after a
    /// failed attempt to connect.
    virtual void on_contact_regained() noexcept = 0;

protected:
    ~contact_watcher() = default;
};

/// The seam between the core and a backend. A subclass starts operations and reports each one's end through its
/// completion; it contains no cancellation code: callers detach in the core, a started operation always goes on.
///
/// The core calls with claims whose `sent()` is set, and has at most one operation under way per claim. An adapter ends
/// every operation by itself, within its own operation timeout, with an outcome or a failure: `errc::unavailable` only
/// if it is certain that nothing was carried out nor will be, `errc::outcome_unknown` if it may have been. To write one
/// with coroutines instead, derive from awaitable_adapter; docs/adapters.md shows how, and how to test it.
///
/// Thread safety: all members may be called from any thread, and at the same time for different claims. Completions may
/// be called from any thread, but never while a mutex is held that a member takes: they may start the next operation.
class adapter : public std::enable_shared_from_this<adapter>
{
public:
    /// \param executor where the adapter works; the locker's own timers run there too.
    explicit adapter(asio::any_io_executor executor);
    adapter(const adapter&) = delete;
    adapter& operator=(const adapter&) = delete;
    virtual ~adapter();

    /// Empty once the execution context has been shut down.
    [[nodiscard]] asio::any_io_executor executor() const;
    /// "memory", "redis", ...; for messages.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    [[nodiscard]] virtual colock::capabilities capabilities() const noexcept = 0;
    [[nodiscard]] virtual adapter_limits limits() const noexcept { return {}; }
    /// Maximum time by which the backend's clock may get ahead while a lease of that ttl lasts, besides running faster
    /// by a hundredth. A clock gets ahead when another server takes over whose clock is ahead, or by a forward step.
    /// The core ends each lease earlier by this value, and refuses a ttl below four times the value with
    /// `errc::invalid_ttl`. A clock that falls behind needs no bound, because it only prolongs the lease.
    ///
    /// The value may change, so the core asks each time it counts a lease: when a grant, an extension or a renewal is
    /// answered, and when a shorter ttl is about to be sent. The core holds its mutex during the call, so an override
    /// must not call a locker, a lock or a completion. Default: 0, which is right for a backend whose clock never gets
    /// ahead.
    [[nodiscard]] virtual std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept;

    /// Tries once to take the lock. Called for a claim that is not known to hold it: a new one, one that was busy or
    /// failed, one whose last create has an unknown outcome. A claim that holds it already is granted again, for a new
    /// ttl and with the fence that it has, or a greater one. One that is busy keeps its place in the backend's queue,
    /// if there is one and the claim `queues()`.
    virtual void start_create(claim_ptr claim, completion<create_outcome> done) = 0;
    /// Gives a granted lock back: called for a claim that was granted and is not in doubt. `not_held` if nothing of its
    /// was there; touches no other holder's grant. Idempotent.
    virtual void start_release(claim_ptr claim, completion<release_outcome> done) = 0;
    /// Takes back a claim that is queued, in doubt or of unknown outcome. An outcome other than `failed` is a promise:
    /// the claim holds nothing and never will, even if a lost request arrives late. On `failed` it is tried again. May
    /// be called for any claim, also for one that never was sent or holds nothing.
    virtual void start_abandon(claim_ptr claim, completion<release_outcome> done) = 0;
    /// Sets the remaining time to `ttl`, longer or shorter, only if the lock is still ours; never re-creates. Called
    /// for a claim that was granted; `not_held` ends its lease.
    virtual void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) = 0;
    /// Whether the backend holds the lock for this claim now; changes nothing.
    virtual void start_is_valid(claim_ptr claim, completion<valid_outcome> done) = 0;

    /// Called for a claim whose last create was busy, and only with `capabilities::events`. Ends when the lock may be
    /// free, and when an `extend` has brought a holder's expiry nearer; always safe to end early, and it does so when
    /// its event source is newly armed. What was released between the busy answer and this call may not be missed: it
    /// looks again, or was listening before. `until` is when the core will try again on its own. The default never ends
    /// by itself, which is right only without `capabilities::events`.
    virtual void start_wait(claim_ptr claim, lease_clock::time_point until, completion<woken> done);
    /// Ends a wait, if one is under way; its completion may be called or destroyed, now or later. Another wait for the
    /// same claim may start at once; the core knows the completion of an old one and ignores it. The core starts no
    /// other operation for a claim before its wait has ended or was cancelled.
    virtual void cancel_wait(claim& claim) noexcept;

    /// Gives `held` back and creates `next`, both exclusive, in one step. Default: one after the other. If it fails
    /// with an unknown outcome, both claims are in doubt.
    virtual void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done);

    /// The live holders of a key.
    virtual void start_inspect(std::string key, completion<list_outcome> done);
    /// The administrator's release: queries the holders of a key, removes them, and returns what it removed. The
    /// removal names these holders. A lock that is granted, handed over or adopted after the query is left alone,
    /// however late the removal arrives. An empty answer means that none of the holders that were found was left.
    virtual void start_break(std::string key, completion<list_outcome> done);
    /// The live holders that match, in pages: the first with an empty cursor, each other with the `next` of the one
    /// before it. A page may be empty, and is small enough to hold nobody up. What is granted or ends meanwhile may be
    /// missing, and a key that moves may come twice. A cursor that cannot be one of its own fails with
    /// `errc::invalid_options`.
    virtual void start_list(filter which, std::string cursor, completion<list_outcome> done);
    /// Removes expired locks and returns them, in steps that go on as the pages of a list do: at most `limit` in this
    /// one (0: as many as it likes), never a live one. An outcome that failed has what was removed all the same.
    virtual void start_purge(std::size_t limit, std::string cursor, completion<list_outcome> done);

    /// Creates all claims or none; each alone as `start_create` does. A refusal leaves nothing behind: no claim keeps a
    /// place in a queue, nor stops others.
    virtual void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done);
    /// Releases all locks of a group, or sets the remaining time of each to at least `ttl`; other processes' too. An
    /// extension never brings an expiry nearer, as a holder elsewhere counts by its own clock. If one of them has no
    /// ttl, it fails with `errc::invalid_ttl` and changes none. Expired locks are not among them; an id that nobody
    /// holds a lock of is no failure. Finds them by an index: what it costs grows with the group, not with all the
    /// locks there are.
    virtual void start_group(
        std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done);
    /// What another process needs to go on with a held lock, of any bytes: whoever has it, has the lock. Empty by
    /// default.
    [[nodiscard]] virtual std::string export_ticket(const claim& held) const;
    /// Makes `claim`, of the same key and mode, the holder of what the ticket was exported for, in one compare-and-set
    /// on the backend: granted for its own ttl, with a fence greater than that which the ticket's claim had, so that a
    /// ticket works once; or busy if nothing is held under the ticket any more. A claim that holds it already is
    /// granted again, as by `start_create`: an adoption whose outcome is unknown may be tried again, and ends with
    /// `abandon`.
    virtual void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done);

    /// Closes connections as soon as nobody needs them. After `deadline` what is not sent fails, and what is not
    /// answered is given up. The adapter stays usable.
    virtual void start_close(lease_clock::duration deadline, completion<closed> done);
    /// A locker was made while a close was under way, or right before it: the close ends now, and nothing is closed or
    /// given up for it any more. Called from any thread. Does nothing by default, which is right where `start_close`
    /// ends no operation of others.
    virtual void cancel_close() noexcept {}

    /// Who is told of the backend's own events, beside each locker's observer. Kept weakly. If the backend can be
    /// reached, it is told so at once.
    void attach(const std::shared_ptr<observer>& listener);
    /// Keeps `watcher` weakly.
    void watch_contact(const std::shared_ptr<contact_watcher>& watcher);
    /// Counted by each locker for itself; the first one cancels a close. remove_user is true when the last has gone.
    void add_user() noexcept;
    [[nodiscard]] bool remove_user() noexcept;
    [[nodiscard]] bool has_users() const noexcept;
    /// How often a lost connection was made anew.
    [[nodiscard]] std::uint64_t reconnects() const noexcept;
    /// Nothing was sent to the backend before: the time that `notify_ready` was told first. A lease that was asked for
    /// earlier is counted from then on, so that the time to connect is not taken from its ttl.
    [[nodiscard]] lease_clock::time_point connected_at() const noexcept;
    /// How many parts of locks the adapter has given up to take back by itself, beside what it was told to abandon.
    [[nodiscard]] std::uint64_t unproven() const noexcept;
    /// Why the backend cannot be reached now, for those who have had no answer; null while it can, as far as is known.
    /// While there is a trouble, what is under way has not been sent, or cannot take effect: what had been sent was
    /// ended with its connection. A connection that is being made is a trouble, too.
    [[nodiscard]] virtual failure_ptr trouble() const;

    // The same operations for direct use. The caller's claim should be marked as sent where a lease matters.
    // Cancellation: none; they end when the operation has.
    [[nodiscard]] asio::awaitable<create_outcome> create(claim_ptr claim);
    [[nodiscard]] asio::awaitable<release_outcome> release(claim_ptr claim);
    [[nodiscard]] asio::awaitable<release_outcome> abandon(claim_ptr claim);
    [[nodiscard]] asio::awaitable<extend_outcome> extend(claim_ptr claim, std::chrono::milliseconds ttl);
    [[nodiscard]] asio::awaitable<valid_outcome> is_valid(claim_ptr claim);
    [[nodiscard]] asio::awaitable<woken> wait(claim_ptr claim, lease_clock::time_point until);
    [[nodiscard]] asio::awaitable<hand_over_outcome> hand_over(claim_ptr held, claim_ptr next);
    [[nodiscard]] asio::awaitable<list_outcome> inspect(std::string key);
    [[nodiscard]] asio::awaitable<list_outcome> break_key(std::string key);
    [[nodiscard]] asio::awaitable<list_outcome> list(filter which, std::string cursor = {});
    [[nodiscard]] asio::awaitable<list_outcome> purge(std::size_t limit, std::string cursor = {});
    [[nodiscard]] asio::awaitable<closed> close(lease_clock::duration deadline);

protected:
    /// Tells that a connection to `address` is being made, and that no other exists: nothing that is under way has been
    /// sent. This is the `trouble()` until `end_connecting`, `notify_ready` or `notify_reconnected`, unless there is
    /// another. Observers hear nothing.
    void notify_connecting(std::string_view address) noexcept;
    /// Tells that the connection exists, or is no longer being made. Observers hear nothing: to be called where neither
    /// `notify_ready` nor `notify_reconnected` is, as after a connection was closed for want of use.
    void end_connecting() noexcept;
    /// Ends the `trouble()`. To be called once: by an adapter that needs no connection when it is made.
    /// \param connected_at see `connected_at()`: the first connection stands since then, and until then nothing can
    /// have been carried out. Not given: what was asked for may have been sent already.
    void notify_ready(lease_clock::time_point connected_at = {}) noexcept;
    /// To be called at each failed attempt to connect; `why` is the `trouble()` from now on. An observer is told what
    /// it has not heard since the backend could be reached last: `why`'s cause, or its code where it has none.
    void notify_unreachable(failure_ptr why, std::string_view address) noexcept;
    /// The same for one of several servers whose adapter has counted already what was told: no `trouble()` of the
    /// whole.
    void tell_unreachable(const error_code& why, std::string_view address) noexcept;
    void notify_suspended(const error_code& why) noexcept;
    /// Ends the `trouble()`, and counts `reconnects()`.
    void notify_reconnected() noexcept;
    void notify_warning(std::string_view message) noexcept;
    /// Adds to `unproven()`.
    void count_unproven(std::uint64_t parts) noexcept;

private:
    struct listeners;
    template <class Event>
    void notify(Event event) noexcept;

    const std::shared_ptr<detail::executor_cell> executor_;
    const std::unique_ptr<listeners> listeners_;
};

} // namespace colock
