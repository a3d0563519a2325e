// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/context_member.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace colock::inline v0::quorum {

class node_claim;

/// One master, and the claims that still have to be released on it: claims that are not used any more and for which the
/// first attempt has failed. The node tries each of them again, a few at a time. A claim is done when the node has
/// answered, or when the latest possible expiry has passed. While the node is disconnected, a single timer runs for all
/// claims.
///
/// Thread safety: all members may be called from any thread.
class node final : public std::enable_shared_from_this<node>, public context_member
{
public:
    using time_point = lease_clock::time_point;

    /// \param operation_timeout time that the backend has to answer
    /// \param on_given_up called with the number of claims that were given up although they may still be held
    [[nodiscard]] static std::shared_ptr<node> make(std::shared_ptr<adapter> backend,
        std::chrono::milliseconds operation_timeout, std::function<void(std::uint64_t)> on_given_up);
    node(std::shared_ptr<adapter> backend, std::chrono::milliseconds operation_timeout,
        std::function<void(std::uint64_t)> on_given_up);

    [[nodiscard]] adapter& backend() const noexcept { return *backend_; }

    /// Must be called before the first attempt to release a claim in the background, and `end_attempt` after it.
    /// Closing waits for such attempts. Returns the current epoch.
    [[nodiscard]] std::uint64_t begin_attempt();
    void end_attempt();
    /// Keeps a claim for which the attempt has failed, to try again later. Gives the claim up if the node was closed
    /// since `epoch`.
    /// \param epoch result of `begin_attempt` when the release of the claim began
    void keep(std::shared_ptr<node_claim> unreleased, std::uint64_t epoch);

    /// Tries the remaining claims for as long as the backend may take to answer, gives up the rest, and then closes the
    /// backend.
    void close(lease_clock::duration deadline, completion<close_outcome> done);
    void cancel_close() noexcept;

    void context_shutdown() noexcept override;

private:
    using node_claims = std::deque<std::shared_ptr<node_claim>>;

    void start_round();
    void on_attempt_ended(bool was_answered);
    void arm();
    void disarm();
    void on_timer(std::uint64_t number);
    void close_if_done();
    void finish_close();

    const std::shared_ptr<adapter> backend_;
    const std::chrono::milliseconds operation_timeout_;
    const std::function<void(std::uint64_t)> on_given_up_;
    std::mutex mutex_;
    /// Claims in the order in which they are tried.
    node_claims kept_;
    std::optional<lease_timer> timer_;
    time_point armed_for_ = time_point::max();
    /// Number of the wait that is valid. The handler of an earlier wait has another number and does nothing.
    std::uint64_t wait_number_ = 0;
    /// Number of attempts that have begun with `begin_attempt` and not ended.
    std::size_t attempts_ = 0;
    /// Number of times that the node was closed. An attempt of an earlier epoch is given up if it fails, not kept.
    std::uint64_t epoch_ = 0;
    /// Number of unanswered attempts of the current round, plus one while they are being started.
    std::size_t in_round_ = 0;
    bool round_due_ = false;
    /// True if the next round starts without a delay: the node has answered an attempt of this round, or the round has
    /// given up as many claims as one round may.
    bool skips_delay_ = false;
    std::vector<completion<close_outcome>> closing_;
    time_point close_by_ = time_point::max();
    time_point give_up_by_ = time_point::max();
    bool is_shut_down_ = false;
};

} // namespace colock::inline v0::quorum
