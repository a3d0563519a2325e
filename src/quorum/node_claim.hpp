// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::quorum {

/// The answer of one node to an extension.
struct extend_answer
{
    extend_outcome outcome;
    /// `late_ttl` of the node's claim: the smallest ttl that a request without an answer may still set on this node.
    /// The quorum does not wait for the answers of all nodes, so an earlier extension may still be on its way.
    std::chrono::milliseconds late_ttl;
};

/// The claim on one node in one round. Each round has its own claims. A claim that is being released is never used
/// again, so a late release cannot remove a newer grant.
///
/// An adapter allows one operation per claim at a time, and the quorum decides before every node has answered. So the
/// next request waits for the operation in flight. A waiting request fails with `errc::unavailable` when another
/// request replaces it.
///
/// Thread safety: none; belongs to the strand of the quorum.
class node_claim final : public std::enable_shared_from_this<node_claim>
{
public:
    using time_point = lease_clock::time_point;
    using milliseconds = std::chrono::milliseconds;

    node_claim(std::shared_ptr<node> node, claim_ptr claim) : node_(std::move(node)), claim_(std::move(claim)) {}

    /// \param ticket adopts the lock of this part of a ticket; empty for a create
    void create(time_point sent_at, std::string ticket, completion<create_outcome> done);
    /// Completes with the part of the ticket that belongs to this node, after the answer to the create or adoption in
    /// flight. If the node is not known to hold the claim, the part is empty, and the claim is released in the
    /// background, so that a late grant does not remain. A create that is not sent yet is cancelled.
    void export_ticket(completion<std::string> done);
    void extend(time_point sent_at, milliseconds ttl, completion<extend_answer> done);
    void is_valid(completion<valid_outcome> done);

    /// Releases the claim and ends requests that have not been sent. Calls during an attempt share its result.
    void abandon(completion<release_outcome> done);
    /// Ends the use of the claim. It is released in the background, with retries if necessary.
    void abandon_in_background();

    // Called by the node that keeps the claim between attempts.
    void retry_abandon(completion<release_outcome> done);
    /// True if the latest expiry that the node may know has passed by more than `operation_timeout`.
    [[nodiscard]] bool has_expired(time_point now, milliseconds operation_timeout) const;

private:
    /// Whether a request may be sent. It is refused if a newer request has replaced it, or if the claim's use has
    /// ended.
    enum class permission : unsigned char
    {
        granted,
        refused,
    };
    class in_flight_guard;

    /// Sends the request now or after the operation in flight, or refuses it.
    template <class Request>
    void submit(Request request);
    /// Returns the completion of the operation in flight. It calls `function` with the outcome on the strand.
    template <class Outcome, class Function>
    [[nodiscard]] completion<Outcome> on_answer(Function function);
    void start_next();
    /// Ends the use of the claim.
    void retire(bool must_release);
    void send_abandon();
    void drop_operation() noexcept;
    void on_abandoned(release_outcome outcome);
    void keep_if_needed();
    /// Returns whether the node may have held the claim before.
    bool note_possible_hold(milliseconds ttl);

    const std::shared_ptr<node> node_;
    const claim_ptr claim_;
    bool is_in_flight_ = false;
    /// True while a create or an adoption is in flight.
    bool is_creating_ = false;
    /// The request that waits for the operation in flight.
    completion<permission> pending_;
    /// True if the node may have granted the claim, or may do so later.
    bool may_be_held_ = false;
    time_point held_until_{};

    // State of the release.
    /// True once the use of the claim has ended. Then new requests are refused.
    bool is_retired_ = false;
    /// True if a release is in flight or comes next.
    bool is_abandoning_ = false;
    /// True if an attempt to release has failed.
    bool has_failed_ = false;
    /// True if an attempt has released the claim, or may have. A repetition finds nothing, but the lock was held.
    bool may_have_released_ = false;
    std::vector<completion<release_outcome>> abandon_handlers_;
    bool is_abandoned_ = false;
    /// Epoch of the node when `abandon_in_background` was called.
    std::uint64_t epoch_ = 0;
    /// True if the node counts the attempt in flight.
    bool is_counted_ = false;
    /// True while the node keeps the claim for the next attempt.
    bool is_kept_ = false;
};

} // namespace colock::inline v0::quorum
