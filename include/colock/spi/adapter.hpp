// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/spi/adapter_traits.hpp>
#include <colock/spi/claim.hpp>
#include <colock/spi/completion.hpp>
#include <colock/spi/contact.hpp>
#include <colock/spi/outcome.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0 {

/// The interface between the core and a backend. A derived class starts operations and reports the end of each through
/// its completion.
///
/// An adapter contains no cancellation code: a cancelled caller is detached in the core, and an operation that was
/// started always continues. The core passes claims whose `operation_start()` is set, and has at most one operation in
/// flight per claim.
///
/// An adapter ends every operation by itself, within its own operation timeout, with an outcome or a failure. It
/// reports `errc::unavailable` only if the operation was certainly not carried out and never will be. It reports
/// `errc::outcome_unknown` if the operation may have been carried out. To write an adapter with coroutines, derive from
/// awaitable_adapter; docs/adapters.md shows how to write and test one.
///
/// Thread safety: all members may be called from any thread, and at the same time for different claims. A completion
/// may be called from any thread. It may start the next operation, so it must not be called while a mutex is held that
/// a member function locks.
class COLOCK_EXPORT adapter : public std::enable_shared_from_this<adapter>
{
public:
    /// \param executor runs the adapter's work and the timers of its lockers.
    /// \throws validation_error `invalid_options` if the executor is empty
    explicit adapter(asio::any_io_executor executor);
    adapter(const adapter&) = delete;
    adapter& operator=(const adapter&) = delete;
    virtual ~adapter();

    /// Returns the executor; empty after the execution context has been shut down.
    [[nodiscard]] asio::any_io_executor executor() const;
    /// Returns the name, the capabilities and the limits of the backend. The result never changes.
    [[nodiscard]] virtual adapter_traits traits() const noexcept = 0;
    /// Returns the maximum time by which the backend's clock may get ahead during a lease with this ttl, in addition to
    /// running faster by one percent. A clock gets ahead by a forward step, or when another server takes over whose
    /// clock is ahead. A clock that falls behind needs no limit, because it only prolongs the lease.
    ///
    /// The core ends each lease earlier by this value, and rejects a ttl below four times the value with
    /// `errc::invalid_ttl`. Default: 0, which is correct for a backend whose clock never gets ahead.
    ///
    /// The value may change, so the core calls the function whenever it computes a lease: when a grant, an extension or
    /// a renewal is answered, and before it sends a shorter ttl. The core holds its mutex during the call, so an
    /// override must not call a locker, a lock or a completion.
    [[nodiscard]] virtual std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept;

    /// Tries once to acquire the lock. Called for a claim that is not known to hold the lock: a new claim, a claim that
    /// was busy or has failed, or a claim whose last create has an unknown outcome.
    ///
    /// If the claim already holds the lock, it is granted again for a new ttl, with its existing fence or a greater
    /// one. If the lock is busy, the claim keeps its place in the backend's queue, provided that the backend has a
    /// queue and `claim::keeps_place()` is true.
    virtual void start_create(claim_ptr claim, completion<create_outcome> done) = 0;
    /// Releases a lock. The outcome is `released` only if the claim held the lock, otherwise `not_held`. Never affects
    /// the grant of another holder. Idempotent. After `failed`, the core calls the function again.
    ///
    /// The guarantee `released` is requested for a claim that was granted and is not in doubt. The guarantee `settled`
    /// may be requested for any claim, also for a claim that was never sent or holds nothing. Everything that the
    /// backend may store for the claim is removed: a place in the queue, or a grant that is in doubt. An outcome other
    /// than `failed` is then a promise: the claim holds nothing and never will, even if a lost request arrives late.
    virtual void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) = 0;
    /// Sets the remaining time to `ttl`, longer or shorter, but only if the claim still holds the lock. Never creates
    /// the lock again. Called for a claim that was granted. The outcome `not_held` ends the lease.
    virtual void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) = 0;
    /// Queries whether the claim holds the lock in the backend now. Changes nothing.
    virtual void start_is_valid(claim_ptr claim, completion<valid_outcome> done) = 0;

    /// Waits until the lock may be free. Called for a claim whose last create was busy, and only with
    /// `capabilities::events`. `until` is the time at which the core will try again by itself.
    ///
    /// The operation also ends when an `extend` has brought a holder's expiry nearer, and when a new event subscription
    /// becomes active. It may always end early. A release between the busy answer and this call must not be missed: the
    /// adapter must check the lock again, or have subscribed before.
    ///
    /// The default never ends by itself, which is correct only without `capabilities::events`.
    virtual void start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done);
    /// Ends the wait of this claim, if there is one. The completion of that wait may be called or destroyed, now or
    /// later. The core may start another wait for the same claim at once, and ignores the completion of the old wait.
    /// The core starts no other operation for a claim before its wait has ended or was cancelled.
    virtual void cancel_wait(claim& claim) noexcept;

    /// Releases `held` and creates `next` in one step. Both are exclusive. Default: a release and then a create. If the
    /// operation fails with an unknown outcome, both claims are in doubt.
    virtual void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done);

    /// Lists or removes locks of any holder. Required for `capabilities::list`. Default: `errc::unsupported`.
    ///
    /// - `list` returns one page of the live holders. All holders of a key, if the filter has one, are one page. A page
    ///   may be empty, and must be small enough not to delay other operations. Holders that are granted or end between
    ///   two pages may be missing, and a key that the backend moves meanwhile may be returned twice.
    /// - `break_key` is a forced release for administrators. The adapter queries the holders of the key, and removes
    ///   exactly these. A lock that is granted, handed over or adopted after the query is therefore not removed,
    ///   however late the removal arrives. An empty result means that none of the holders was left.
    /// - `purge` removes expired locks in steps that continue like the pages of a list. It never removes a live lock or
    ///   data of other programs. A failed outcome contains the locks that were removed before the failure.
    ///
    /// The cursor consists of any text. A text that is not a `next` of this adapter fails with `errc::invalid_options`,
    /// before anything is sent.
    virtual void start_listing(listing_request request, completion<list_outcome> done);

    /// Creates all claims or none. Each claim is created as by `start_create`. If the request is refused, no claim
    /// keeps a place in a queue or blocks other claims. If the backend cannot grant these claims together, the
    /// operation fails with `errc::unsupported`, and no claim was created. The core then creates them one by one.
    virtual void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done);
    /// Releases all locks of a group, or extends the remaining time of each to at least `ttl`, including those of other
    /// processes. An extension never brings an expiry nearer, because a holder elsewhere uses its own clock.
    ///
    /// If one of the locks has no ttl, an extension fails with `errc::invalid_ttl` and changes nothing. Expired locks
    /// do not belong to the group. An id without locks is not an error. The adapter must find the locks by an index.
    /// The cost must depend on the size of the group, not on the total number of locks.
    virtual void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done);
    /// Makes the data (arbitrary bytes) with which another process can take over a held lock. The data are sufficient
    /// to take over the lock, so they are a secret. The lock stays held. An adapter of several servers first waits for
    /// those answers to the create that the grant did not need. Default: `errc::unsupported`.
    virtual void start_export(claim_ptr held, completion<export_outcome> done);
    /// Makes `claim`, of the same key and mode, the holder of the lock that the ticket was exported for, in one
    /// compare-and-set on the backend. The lock is granted for the ttl of `claim`, with a fence greater than that of
    /// the ticket's claim, so that a ticket works once. The outcome is busy if nothing is held under the ticket any
    /// more.
    ///
    /// A claim that already holds the lock is granted again, as by `start_create`. An adoption with an unknown outcome
    /// may therefore be repeated, and is ended by a release that is `settled`.
    virtual void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done);

    /// Closes each connection when it is no longer used. After `deadline`, operations that are not sent fail, and
    /// operations that are not answered are given up. The adapter can still be used afterwards: until cancel_close(),
    /// each connection is closed again as soon as it is not used.
    virtual void start_close(lease_clock::duration deadline, completion<close_outcome> done);
    /// Called from any thread when a locker is made during or after a close, or directly before it. The close ends now,
    /// and must not close or give up anything afterwards. The default does nothing, which is correct if `start_close`
    /// does not end operations of other lockers.
    virtual void cancel_close() noexcept {}

    /// Registers an observer for the events of the backend, in addition to the observer of each locker. Keeps a weak
    /// reference. If the backend can be reached, the observer is notified at once.
    void attach(const std::shared_ptr<observer>& listener);
    /// Reports why the backend has refused an operation, as a `warning`. The core calls this for each failed operation.
    /// Does nothing for other failures, and if a warning has already contained the same cause.
    void warn_of_refusal(const failure& failure) noexcept;
    /// Registers a contact_watcher. Keeps a weak reference.
    void watch_contact(const std::shared_ptr<contact_watcher>& watcher);
    /// Registers a locker; each locker calls this function and remove_user() for itself. The first user cancels a
    /// close.
    void add_user() noexcept;
    /// Removes a locker. Returns true if no locker is left.
    [[nodiscard]] bool remove_user() noexcept;
    /// Returns whether a locker uses this adapter.
    [[nodiscard]] bool has_users() const noexcept;
    /// Returns how often a lost connection was established again.
    [[nodiscard]] std::uint64_t reconnects() const noexcept;
    /// Returns the `connected_at` of the first `contact::set_up`: before this time, nothing was sent to the backend. A
    /// lease that was requested earlier is counted from this time, so that the time to connect does not shorten the
    /// lease.
    [[nodiscard]] lease_clock::time_point connected_at() const noexcept;
    /// Returns the number of parts of locks that the adapter could not remove by itself, not counting the claims that
    /// were passed to `start_release`.
    [[nodiscard]] std::uint64_t unproven() const noexcept;
    /// Returns why the backend cannot be reached at present, or null if it can be reached as far as is known. The core
    /// reports this to callers that have received no answer.
    ///
    /// While the result is not null, an operation in flight has not been sent or can no longer take effect: operations
    /// that were sent have ended with their connection. The result is also not null while a connection is being
    /// established.
    [[nodiscard]] virtual failure_ptr connection_failure() const;

    /// Awaitable form of start_create. This function and the next ones are for direct use, for example in tests. If the
    /// lease matters, call `set_operation_start` on the claim before. Cancellation: not supported; the functions return
    /// when the operation has ended.
    [[nodiscard]] asio::awaitable<create_outcome> create(claim_ptr claim);
    /// Awaitable form of start_release.
    [[nodiscard]] asio::awaitable<release_outcome> release(claim_ptr claim, release_guarantee guarantee);
    /// Awaitable form of start_extend.
    [[nodiscard]] asio::awaitable<extend_outcome> extend(claim_ptr claim, std::chrono::milliseconds ttl);
    /// Awaitable form of start_is_valid.
    [[nodiscard]] asio::awaitable<valid_outcome> is_valid(claim_ptr claim);
    /// Awaitable form of start_wait.
    [[nodiscard]] asio::awaitable<wait_outcome> wait(claim_ptr claim, lease_clock::time_point until);
    /// Awaitable form of start_hand_over.
    [[nodiscard]] asio::awaitable<hand_over_outcome> hand_over(claim_ptr held, claim_ptr next);
    /// Awaitable form of start_listing. Returns only the locks that match the filter, and cursors as a locker returns
    /// them, which name the backend.
    [[nodiscard]] asio::awaitable<list_outcome> listing(listing_request request);
    /// Awaitable form of start_close.
    [[nodiscard]] asio::awaitable<close_outcome> close(lease_clock::duration deadline);

protected:
    /// Called once during the shutdown of the execution context, when the context runs no more threads. `executor()` is
    /// empty already. An override destroys the timers, strands, sockets and stored handlers of the adapter: to destroy
    /// one of them after its context is a use after free. This may destroy coroutines, and with them locks and lockers.
    ///
    /// Not called for an adapter that was destroyed before its context, and not for objects that outlive the adapter.
    /// These derive from context_member.
    virtual void context_shutdown() noexcept {}

    /// Returns the object to which the adapter reports whether the backend can be reached.
    [[nodiscard]] colock::contact& contact() noexcept { return contact_; }
    /// Adds to `unproven()`.
    void count_unproven(std::uint64_t parts) noexcept;

private:
    class shared_executor;

    const std::shared_ptr<shared_executor> executor_;
    colock::contact contact_;
    std::atomic<std::uint64_t> unproven_{0};
    std::atomic<unsigned> users_{0};
};

} // namespace colock::inline v0
