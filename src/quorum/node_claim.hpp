// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace colock::quorum {

struct extension
{
    extend_outcome outcome;
    /// Of the node's claim. Where a majority has answered nobody waits for the rest, so that a shorter extension may be
    /// on its way to some.
    std::chrono::milliseconds late_ttl;
};

/// A node's part in one round: a claim of its own. Another round has others: what is being taken back is never used
/// again, so that a take-back that is late removes nothing that counts.
///
/// The seam allows one operation per claim at a time, and a question is decided before every node has answered it: the
/// next one waits behind it, and ends unanswered when yet another comes.
///
/// This is a chain of callbacks, not a coroutine: each operation is a single call of the node's adapter, and what
/// follows it is decided by calls that arrive meanwhile from any thread.
///
/// Thread safety: all members may be called from any thread.
class node_claim final : public std::enable_shared_from_this<node_claim>
{
public:
    using time_point = lease_clock::time_point;
    using milliseconds = std::chrono::milliseconds;

    node_claim(std::shared_ptr<node> on, claim_ptr claim) : node_(std::move(on)), claim_(std::move(claim)) {}

    void create(time_point sent, completion<create_outcome> done);
    /// \param ticket of the same node.
    void adopt(time_point sent, std::string ticket, completion<create_outcome> done);
    [[nodiscard]] std::string export_ticket() const { return node_->backend().export_ticket(*claim_); }
    void extend(time_point sent, milliseconds ttl, completion<extension> done);
    void is_valid(completion<valid_outcome> done);

    /// Ends what was asked of it and not sent yet. Attempts that are asked for while one is under way share its answer.
    void take_back(completion<release_outcome> done);
    /// Nobody will ask for it again: it is taken back, over and over if need be.
    void orphan();
    /// Whoever has its ticket goes on with it, but is refused what the node has not granted by then: a create that is
    /// not answered yet is taken back.
    void moves();

    // For the node that keeps it meanwhile.
    void take_back_again(completion<release_outcome> done);
    /// The latest expiry that the node may know of has passed by more than `patience`.
    [[nodiscard]] bool has_expired(time_point now, milliseconds patience);

private:
    struct create_request
    {
        time_point sent;
        /// Set: it adopts.
        std::optional<std::string> ticket;
        completion<create_outcome> done;
    };
    struct extend_request
    {
        time_point sent;
        milliseconds ttl;
        completion<extension> done;
    };
    struct valid_request
    {
        completion<valid_outcome> done;
    };
    using request = std::variant<create_request, extend_request, valid_request>;

    class under_way;

    void submit(request asked);
    void send(request asked);
    static void refuse(request asked);
    void begin(create_request asked);
    void begin(extend_request asked);
    void begin(valid_request asked);
    void go_on();
    /// What an end of its use leaves to be done without the mutex.
    struct release_state
    {
        /// What was asked of it and not sent yet.
        std::optional<request> refused;
        /// A take-back is to be sent now, not behind what is under way.
        bool goes = false;
    };
    [[nodiscard]] release_state use_up(bool attempts) noexcept;
    void set_out(release_state begun);
    void abandon();
    void drop_waiting() noexcept;
    void on_abandoned(const release_outcome& outcome);
    void keep_if_needed();
    [[nodiscard]] bool may_stand();
    /// Returns whether it may have stood before.
    bool stands_for(milliseconds ttl);
    void is_gone();
    void is_creating(bool now);

    const std::shared_ptr<node> node_;
    const claim_ptr claim_;
    std::mutex mutex_;
    bool under_way_ = false;
    /// By a create, or an adoption.
    bool creating_ = false;
    std::optional<request> next_;
    /// The node may have granted it, or may do so yet.
    bool may_stand_ = false;
    time_point stands_until_{};

    // The way back.
    /// From the first take-back on.
    bool used_up_ = false;
    /// A take-back is under way or next.
    bool taking_back_ = false;
    /// One has failed.
    bool tried_ = false;
    std::vector<completion<release_outcome>> takers_;
    bool orphaned_ = false;
    /// The node's, at that moment.
    std::uint64_t epoch_ = 0;
    /// The node counts the attempt that is under way.
    bool counted_ = false;
    /// The node keeps it until the next attempt.
    bool kept_ = false;
};

} // namespace colock::quorum
