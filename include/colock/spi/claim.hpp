// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/detail/generation.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/spi/lease.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace colock {

/// What a claim asks for. The ttl is rounded up to whole milliseconds by its type; 0 means "until released".
struct claim_request
{
    std::string key;
    lock_mode mode = lock_mode::exclusive;
    /// For shared claims: granted only if fewer than this many shared holders live. 0: any number.
    std::size_t max_holders = 0;
    std::chrono::milliseconds ttl{30'000};
    /// False for a single attempt: a backend that keeps a queue then must not keep a place for it.
    bool queues = true;
    /// Never null.
    std::shared_ptr<const owner_data> owner = std::make_shared<const owner_data>();
};

/// One acquisition, or one part of it, from its first create to its last release: shared by the core, which derives
/// from it, and the adapter, which may keep a pointer to it for as long as it likes.
///
/// Thread safety: `slot` belongs to whoever has the operation of this claim under way, see there; all else may be used
/// from any thread.
class claim
{
public:
    explicit claim(claim_request&& request)
        : key_(std::move(request.key)), owner_(std::move(request.owner)), hash_(std::hash<std::string>{}(key_)),
          max_holders_(request.max_holders), ttl_(request.ttl.count()), mode_(request.mode), queues_(request.queues)
    {
    }
    claim(const claim&) = delete;
    claim& operator=(const claim&) = delete;
    virtual ~claim() = default;

    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    /// std::hash of the key, computed once.
    [[nodiscard]] std::size_t key_hash() const noexcept { return hash_; }
    /// The same in every attempt of this claim. Made when it is first asked for: a backend that knows its claims
    /// by address needs none.
    /// \throws boost::system::system_error if the operating system has no randomness to give.
    [[nodiscard]] const colock::token& token() const
    {
        if (token_state_.load(std::memory_order_acquire) != token_state::made)
            make_token();
        return token_;
    }
    [[nodiscard]] lock_mode mode() const noexcept { return mode_; }
    [[nodiscard]] std::size_t max_holders() const noexcept { return max_holders_; }
    /// 0: until released.
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept
    {
        return std::chrono::milliseconds(ttl_.load(std::memory_order_relaxed));
    }
    [[nodiscard]] bool queues() const noexcept { return queues_; }
    [[nodiscard]] const owner_data& owner() const noexcept { return *owner_; }
    /// The same, for an adapter that keeps it beyond the claim's life.
    [[nodiscard]] const std::shared_ptr<const owner_data>& shared_owner() const noexcept { return owner_; }

    /// It was asked for before a fork, and this process is the child: the parent goes on with it under the same token.
    /// Here it holds nothing, and nothing may be sent for it.
    [[nodiscard]] bool is_from_parent() const noexcept
    {
        return generation_ != detail::generation.load(std::memory_order_relaxed);
    }

    /// The acquire was given up: nobody waits for its create any more. It never becomes false again.
    ///
    /// An adapter may do without it. One whose requests wait for a connection looks at it while they do: a create of
    /// such a claim that was certainly not sent ends as `unavailable`, there and then, so that nothing is connected for
    /// it and an `io_context` runs out of work. It changes nothing for what was sent, and never keeps back a request
    /// that gives back, or completes, what a create of this claim was granted before; what is granted nevertheless is
    /// given back by the core.
    [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }

    /// When the core started the operation that is under way; an expiry that an adapter counts from here can only be
    /// later than the one that the holder counts on. On a backend that answers at once, a release may still carry the
    /// time of an earlier operation: it says nothing about the claims of others.
    [[nodiscard]] lease_clock::time_point sent() const noexcept
    {
        return lease_clock::time_point(lease_clock::duration(sent_.load(std::memory_order_relaxed)));
    }

    /// Some attempt of this claim has an unknown outcome: it ends with `abandon`, never with `release`, even if a later
    /// attempt is granted. Set by the core; cleared only by an adapter that has proof that no request is under way.
    [[nodiscard]] bool in_doubt() const noexcept { return tainted_.load(std::memory_order_relaxed); }
    void clear_taint() noexcept { tainted_.store(false, std::memory_order_relaxed); }

    /// The smallest ttl that a request without an answer would set, should it arrive late; `milliseconds::max()`: there
    /// is none. It would cut what was extended since, so the core counts on no more than this. Requests are added by
    /// the core and, where it tells of success without every part's answer, by an adapter; they are cleared only by an
    /// adapter that has proof that none can cut it.
    [[nodiscard]] std::chrono::milliseconds late_ttl() const noexcept
    {
        return std::chrono::milliseconds(late_ttl_.load(std::memory_order_relaxed));
    }
    void may_arrive_late(std::chrono::milliseconds ttl) noexcept
    {
        auto known = late_ttl_.load(std::memory_order_relaxed);
        while (ttl.count() < known && !late_ttl_.compare_exchange_weak(known, ttl.count(), std::memory_order_relaxed))
            continue;
    }
    void clear_late() noexcept { late_ttl_.store(never_late, std::memory_order_relaxed); }

    /// A release of it has an unknown outcome: if it arrived late, it would take away a grant that this claim was given
    /// since. The core goes on with another claim, and settles this one. Set by the core, or by an adapter whose create
    /// gives back what it cannot keep.
    [[nodiscard]] bool spent() const noexcept { return spent_.load(std::memory_order_relaxed); }
    void spend() noexcept { spent_.store(true, std::memory_order_relaxed); }

    /// When its release began, others of the same locker waited for its key, and want to know whether those of other
    /// lockers do (`release_outcome::others_wait`). An adapter to which that knowledge is dear can do without else.
    [[nodiscard]] bool awaited() const noexcept { return awaited_.load(std::memory_order_relaxed); }

    [[nodiscard]] colock::lease& lease() noexcept { return lease_; }
    [[nodiscard]] const colock::lease& lease() const noexcept { return lease_; }

    /// The adapter's own: a queue entry, a node's path, the connection that a request was sent on. Neither read nor
    /// written by the core; what is in it lives as long as the claim.
    ///
    /// It has no lock because it needs none: the core has one operation of a claim under way at a time, so it belongs
    /// to whoever carries that out, from the call that starts it until its completion is called, and to nobody else:
    /// not to a timer or a listener of the adapter's, unless a mutex of the adapter's own guards each access. `wait`
    /// counts as an operation until it has ended or was cancelled; from then on it belongs to the next.
    std::shared_ptr<void> slot;

    /// Called by the adapter: the grant has ended. The end of a session is told to all its leases by its session_bound.
    /// Only the first call counts. A call that comes before the core has processed the grant takes effect as soon as
    /// the claim is held, so an adapter may call at any time after the backend has granted. Ignored once the claim is
    /// given back.
    virtual void lost(lost_reason reason) noexcept { static_cast<void>(reason); }

    /// For the core, and for tests that drive an adapter without one.
    void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
    void set_sent(lease_clock::time_point now) noexcept
    {
        sent_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    void set_ttl(std::chrono::milliseconds ttl) noexcept { ttl_.store(ttl.count(), std::memory_order_relaxed); }
    void set_awaited(bool by_others) noexcept { awaited_.store(by_others, std::memory_order_relaxed); }
    void mark_in_doubt() noexcept { tainted_.store(true, std::memory_order_relaxed); }

    friend void intrusive_ptr_add_ref(const claim* counted) noexcept { counted->references_.add(); }
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
    /// std::call_once would do, but costs a system call each time.
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
    std::atomic<lease_clock::rep> sent_{0};
    static constexpr auto never_late = std::chrono::milliseconds::max().count();
    std::atomic<std::chrono::milliseconds::rep> late_ttl_{never_late};
    colock::lease lease_;
    const unsigned generation_ = detail::generation.load(std::memory_order_relaxed);
    const lock_mode mode_;
    const bool queues_;
    mutable std::atomic<token_state> token_state_{token_state::none};
    std::atomic<bool> cancelled_{false};
    std::atomic<bool> tainted_{false};
    std::atomic<bool> awaited_{false};
    std::atomic<bool> spent_{false};
};

using claim_ptr = boost::intrusive_ptr<claim>;

} // namespace colock
