// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/lost_reason.hpp>
#include <colock/spi/lease.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace colock::inline v0 {

/// The parameters of a claim. The ttl is a whole number of milliseconds; 0 means "until released".
struct claim_request
{
    /// The key of the lock.
    std::string key;
    /// Exclusive or shared.
    lock_mode mode = lock_mode::exclusive;
    /// For shared claims: the claim is granted only if fewer than this many shared holders exist. 0: any number.
    std::size_t max_holders = 0;
    /// Time to live of the grant; 0: until released.
    std::chrono::milliseconds ttl{30'000};
    /// False for a single attempt: a backend with a queue must not keep a place for this claim.
    bool keeps_place = true;
    /// Never null.
    std::shared_ptr<const owner_data> owner = std::make_shared<const owner_data>();
};

/// One acquire or a part of one, from its first create to its last release. The core derives from this class, and
/// shares the object with the adapter. The adapter may keep a pointer to it for as long as it likes.
///
/// Thread safety: `slot` belongs to the code that executes the current operation of this claim, see there. All other
/// members may be used from any thread.
class COLOCK_EXPORT claim
{
public:
    /// Makes a claim that has not been sent yet.
    explicit claim(claim_request&& request)
        : key_(std::move(request.key)), owner_(std::move(request.owner)), hash_(std::hash<std::string>{}(key_)),
          max_holders_(request.max_holders), ttl_(request.ttl.count()), mode_(request.mode),
          keeps_place_(request.keeps_place)
    {
    }
    claim(const claim&) = delete;
    claim& operator=(const claim&) = delete;
    virtual ~claim() = default;

    /// Returns the key.
    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    /// Returns the std::hash of the key, which is computed once.
    [[nodiscard]] std::size_t key_hash() const noexcept { return hash_; }
    /// Returns the token, which is the same in every attempt of this claim. It is generated at the first call, because
    /// a backend that identifies claims by their address needs no token.
    /// \throws boost::system::system_error if the operating system cannot provide random bytes.
    [[nodiscard]] const colock::token& token() const
    {
        if (token_state_.load(std::memory_order_acquire) != token_state::made)
            make_token();
        return token_;
    }
    /// Returns the mode.
    [[nodiscard]] lock_mode mode() const noexcept { return mode_; }
    /// Returns claim_request::max_holders.
    [[nodiscard]] std::size_t max_holders() const noexcept { return max_holders_; }
    /// Returns the ttl; 0 means "until released".
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept
    {
        return std::chrono::milliseconds(ttl_.load(std::memory_order_relaxed));
    }
    /// Returns whether a backend with a queue may keep a place for this claim.
    [[nodiscard]] bool keeps_place() const noexcept { return keeps_place_; }
    /// Returns the owner data.
    [[nodiscard]] const owner_data& owner() const noexcept { return *owner_; }
    /// Returns the owner data for an adapter that keeps them longer than the claim exists.
    [[nodiscard]] const std::shared_ptr<const owner_data>& shared_owner() const noexcept { return owner_; }

    /// Returns whether the acquire was given up, so that no caller waits for its create any more. Never becomes false
    /// again.
    ///
    /// An adapter may ignore this flag. An adapter whose requests wait for a connection checks the flag meanwhile. The
    /// create of a cancelled claim ends at once with `unavailable` if it was certainly not sent. The adapter then does
    /// not connect for this create, and an `io_context` can run out of work.
    ///
    /// The flag has no effect on requests that were sent. It must never delay a request that releases or completes an
    /// earlier grant of this claim. If the claim is granted nevertheless, the core releases it.
    [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }

    /// Returns the time at which the core started the current operation. An expiry that an adapter counts from this
    /// time is never earlier than the expiry that the holder uses. On a backend that answers at once, a release may
    /// still have the time of an earlier operation; this does not affect the claims of others.
    [[nodiscard]] lease_clock::time_point operation_start() const noexcept
    {
        return lease_clock::time_point(lease_clock::duration(operation_start_.load(std::memory_order_relaxed)));
    }

    /// Returns whether an attempt of this claim has an unknown outcome. Such a claim ends with a release whose
    /// guarantee is `settled`, even if a later attempt is granted. Set by the core. Cleared only by an adapter that has
    /// proof that no request is in flight.
    [[nodiscard]] bool in_doubt() const noexcept { return in_doubt_.load(std::memory_order_relaxed); }
    /// Resets in_doubt(). Called by an adapter that has proof that no request is in flight.
    void clear_in_doubt() noexcept { in_doubt_.store(false, std::memory_order_relaxed); }

    /// Returns the smallest ttl that an unanswered request would set if it arrived late; `milliseconds::max()` if there
    /// is none. Such a request would shorten a later extension, so the core does not rely on a longer lease than this.
    ///
    /// The core adds a ttl for each such request. An adapter that reports success before all parts have answered adds
    /// one too. The value is cleared only by an adapter that has proof that no request can shorten the lease.
    [[nodiscard]] std::chrono::milliseconds late_ttl() const noexcept
    {
        return std::chrono::milliseconds(late_ttl_.load(std::memory_order_relaxed));
    }
    /// Lowers late_ttl() to `ttl`, if it is greater.
    void lower_late_ttl(std::chrono::milliseconds ttl) noexcept
    {
        auto known = late_ttl_.load(std::memory_order_relaxed);
        while (ttl.count() < known && !late_ttl_.compare_exchange_weak(known, ttl.count(), std::memory_order_relaxed))
            continue;
    }
    /// Resets late_ttl(). Called by an adapter that has proof that no request can shorten the lease.
    void clear_late_ttl() noexcept { late_ttl_.store(never_late, std::memory_order_relaxed); }

    /// Returns whether a release of this claim has an unknown outcome. If that release arrived late, it would remove a
    /// later grant of this claim. The core therefore continues with another claim, and cleans up this one. Set by the
    /// core, or by an adapter whose create releases a grant that it cannot keep.
    [[nodiscard]] bool release_in_doubt() const noexcept { return release_in_doubt_.load(std::memory_order_relaxed); }
    /// Sets release_in_doubt(), which is never reset.
    void mark_release_in_doubt() noexcept { release_in_doubt_.store(true, std::memory_order_relaxed); }

    /// Returns whether other callers of the same locker waited for the key when the release began. Only then does the
    /// core need to know whether other lockers wait too (`release_outcome::others_wait`). An adapter for which this is
    /// expensive may determine it only in this case.
    [[nodiscard]] bool has_local_waiters() const noexcept { return has_local_waiters_.load(std::memory_order_relaxed); }

    /// Returns the time until which the grant is valid.
    [[nodiscard]] colock::lease& lease() noexcept { return lease_; }
    [[nodiscard]] const colock::lease& lease() const noexcept { return lease_; }

    /// Data of the adapter: a queue entry, a node's path, the connection that a request was sent on. The core neither
    /// reads nor writes it. The data exist as long as the claim.
    ///
    /// The slot needs no mutex, because the core has only one operation of a claim in flight. It belongs to the code
    /// that executes this operation, from the call that starts the operation until its completion is called. A timer or
    /// a listener of the adapter must not access it, unless a mutex of the adapter guards each access. `wait` is an
    /// operation until it has ended or was cancelled; then the slot belongs to the next operation.
    std::shared_ptr<void> slot;

    /// Called by the adapter when the grant has ended. If a session has ended, its session_lease reports this to all
    /// its leases instead.
    ///
    /// Only the first call has an effect. An adapter may call this at any time after the backend has granted. A call
    /// before the core has processed the grant takes effect as soon as the claim is held. Ignored after the claim was
    /// released.
    virtual void lost(lost_reason reason) noexcept { static_cast<void>(reason); }

    /// Sets `cancelled()`. This function and the next four are called by the core, and by tests that use an adapter
    /// without the core.
    void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
    /// Sets operation_start().
    void set_operation_start(lease_clock::time_point now) noexcept
    {
        operation_start_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    /// Sets ttl(), after an extension has succeeded.
    void set_ttl(std::chrono::milliseconds ttl) noexcept { ttl_.store(ttl.count(), std::memory_order_relaxed); }
    /// Sets has_local_waiters(), before a release is started.
    void set_has_local_waiters(bool has_waiters) noexcept
    {
        has_local_waiters_.store(has_waiters, std::memory_order_relaxed);
    }
    /// Sets in_doubt().
    void mark_in_doubt() noexcept { in_doubt_.store(true, std::memory_order_relaxed); }

    /// Adds a reference, for boost::intrusive_ptr.
    friend void intrusive_ptr_add_ref(const claim* counted) noexcept { counted->references_.add(); }
    /// Removes a reference, and destroys the claim with the last one, for boost::intrusive_ptr.
    friend void intrusive_ptr_release(const claim* counted) noexcept
    {
        if (counted->references_.remove())
            delete counted;
    }

private:
    enum class token_state : unsigned char
    {
        none,
        making,
        made,
    };
    /// Generates the token once. std::call_once would also work, but it costs a system call for each token.
    void make_token() const
    {
        if (detail::is_single_threaded()) {
            token_ = colock::token::generate();
            token_state_.store(token_state::made, std::memory_order_relaxed);
            return;
        }
        for (;;) {
            auto found = token_state::none;
            if (token_state_.compare_exchange_strong(found, token_state::making, std::memory_order_acquire))
                break;
            if (found == token_state::made)
                return;
            token_state_.wait(token_state::making, std::memory_order_acquire);
        }
        try {
            token_ = colock::token::generate();
        } catch (...) {
            end_making(token_state::none);
            throw;
        }
        end_making(token_state::made);
    }
    void end_making(token_state reached) const noexcept
    {
        token_state_.store(reached, std::memory_order_release);
        token_state_.notify_all();
    }

    mutable detail::reference_count references_;
    const std::string key_;
    const std::shared_ptr<const owner_data> owner_;
    mutable colock::token token_;
    const std::size_t hash_;
    const std::size_t max_holders_;
    std::atomic<std::chrono::milliseconds::rep> ttl_;
    std::atomic<lease_clock::rep> operation_start_{0};
    static constexpr auto never_late = std::chrono::milliseconds::max().count();
    std::atomic<std::chrono::milliseconds::rep> late_ttl_{never_late};
    colock::lease lease_;
    const lock_mode mode_;
    const bool keeps_place_;
    mutable std::atomic<token_state> token_state_{token_state::none};
    std::atomic<bool> cancelled_{false};
    std::atomic<bool> in_doubt_{false};
    std::atomic<bool> has_local_waiters_{false};
    std::atomic<bool> release_in_doubt_{false};
};

/// A reference to a claim, which keeps it alive.
using claim_ptr = boost::intrusive_ptr<claim>;

} // namespace colock::inline v0
