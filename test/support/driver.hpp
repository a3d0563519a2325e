// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "run.hpp"

#include <colock/lost_reason.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

namespace colock::testing {

/// A claim without a locker. It records the losses that its adapter reports.
class plain_claim : public claim
{
public:
    using claim::claim;

    void lost(lost_reason reason) noexcept override { losses.push_back(reason); }

    std::vector<lost_reason> losses;
};
using plain_claim_ptr = boost::intrusive_ptr<plain_claim>;

/// Sets the send time of a claim, as the core does before it calls the adapter.
template <class Claim>
Claim sent_now(Claim claim)
{
    claim->set_operation_start(lease_clock::now());
    return claim;
}

/// Returns the locks that are stored in an adapter whose operations complete inside the call.
[[nodiscard]] std::vector<lock_status> stored_in(adapter& store);

/// Calls an adapter as the core does, one operation at a time. Each operation runs to its end on the calling thread.
/// The members that check something report through Boost.Test, with the caller's line as context.
class driver
{
public:
    using where = std::source_location;
    static constexpr std::chrono::milliseconds long_ttl = std::chrono::hours(1);

    driver(asio::io_context& context, std::shared_ptr<adapter> backend);

    [[nodiscard]] asio::io_context& io() const noexcept { return io_; }
    [[nodiscard]] adapter& backend() const noexcept { return *backend_; }
    [[nodiscard]] const std::shared_ptr<adapter>& shared_backend() const noexcept { return backend_; }

    [[nodiscard]] static plain_claim_ptr exclusive(std::string key, std::chrono::milliseconds ttl = long_ttl);
    [[nodiscard]] static plain_claim_ptr shared(
        std::string key, std::size_t max_holders = 0, std::chrono::milliseconds ttl = long_ttl);
    /// The claim does not keep a place in a queue.
    [[nodiscard]] static plain_claim_ptr one_attempt(std::string key, lock_mode mode = lock_mode::exclusive);

    /// Returns a weak pointer that expires when nothing refers to the claim any more.
    [[nodiscard]] static std::weak_ptr<const void> watch(const claim_ptr& claim) { return claim->shared_owner(); }

    create_outcome create(const claim_ptr& claim, where at = where::current()) const;
    create_all_outcome create_all(const std::vector<plain_claim_ptr>& claims, where at = where::current()) const;
    release_outcome release(const claim_ptr& claim, where at = where::current()) const;
    release_outcome abandon(const claim_ptr& claim, where at = where::current()) const;
    extend_outcome extend(const claim_ptr& claim, std::chrono::milliseconds ttl, where at = where::current()) const;
    valid_outcome valid(const claim_ptr& claim, where at = where::current()) const;
    hand_over_outcome hand_over(const claim_ptr& held, const claim_ptr& next, where at = where::current()) const;
    /// Returns the ticket of a claim that holds a lock.
    [[nodiscard]] std::string export_ticket(const claim_ptr& held, where at = where::current()) const;
    create_outcome adopt(std::string ticket, const claim_ptr& claim, where at = where::current()) const;
    std::vector<lock_status> inspect(std::string key, where at = where::current()) const;
    std::vector<lock_status> break_key(std::string key, where at = where::current()) const;
    /// Returns the locks of all pages.
    std::vector<lock_status> list(const filter& which = {}, where at = where::current()) const;
    group_outcome group(
        std::string id, group_action what, std::chrono::milliseconds ttl = {}, where at = where::current()) const;
    std::vector<lock_status> release_group(std::string id, where at = where::current()) const;
    std::vector<lock_status> extend_group(
        std::string id, std::chrono::milliseconds ttl, where at = where::current()) const;
    /// Runs all steps of a purge.
    std::vector<lock_status> purge(std::size_t limit = 0, where at = where::current()) const;
    /// Starts a loop of create and wait, as the core runs it for a claim without a time limit.
    [[nodiscard]] running<std::uint64_t> start_acquire(const claim_ptr& claim) const;

    /// Creates the claim, and checks that it was granted. \returns the fence
    std::uint64_t grant(const claim_ptr& claim, where at = where::current()) const;
    /// Creates several claims at once, and checks that they were granted. \returns the fences
    std::vector<std::uint64_t> grant_all(const std::vector<plain_claim_ptr>& claims, where at = where::current()) const;
    /// Creates the claim, and checks that the key is busy. \returns the outcome
    create_outcome check_refused(const claim_ptr& claim, where at = where::current()) const;
    create_all_outcome check_all_refused(const std::vector<plain_claim_ptr>& claims, where at = where::current()) const;
    /// Adopts the ticket, and checks that the claim was granted. \returns the fence
    std::uint64_t take_over(std::string ticket, const claim_ptr& claim, where at = where::current()) const;
    /// Releases the claim, and checks that it was held.
    void release_held(const claim_ptr& claim, where at = where::current()) const;
    /// Asks the backend whether the claim is valid, and checks the answer.
    void check_held(const claim_ptr& claim, where at = where::current()) const;
    void check_not_held(const claim_ptr& claim, where at = where::current()) const;

private:
    asio::io_context& io_;
    std::shared_ptr<adapter> backend_;
};

} // namespace colock::testing
