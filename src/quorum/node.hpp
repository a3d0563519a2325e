// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "util/strand.hpp"

#include <colock/clock.hpp>
#include <colock/detail/context_gate.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace colock::inline v0::quorum {

class node_claim;

/// One master, and the claims that still have to be released on it: claims that are not used any more and for which the
/// first attempt has failed. The node tries each of them again, a few at a time. A claim is done when the node has
/// answered, or when the latest possible expiry has passed. While the node is disconnected, a single timer runs for all
/// claims.
///
/// A part of the adapter of the quorum: pointers to a node keep that adapter alive.
///
/// Thread safety: `run` may be called from any thread; all other functions belong to the strand of the quorum.
class node final
{
public:
    using time_point = lease_clock::time_point;

    /// \param owner the adapter of the quorum; its executor is the strand
    /// \param cancelled_closes number of times that closes of the quorum were cancelled; may grow at any time
    /// \param operation_timeout time that the backend has to answer
    /// \param on_given_up called with the number of claims that were given up although they may still be held
    node(adapter& owner, std::shared_ptr<adapter> backend, const std::atomic<std::uint64_t>& cancelled_closes,
        std::chrono::milliseconds operation_timeout, std::function<void(std::uint64_t)> on_given_up);
    node(const node&) = delete;
    node& operator=(const node&) = delete;

    [[nodiscard]] adapter& backend() const noexcept { return *backend_; }
    [[nodiscard]] std::shared_ptr<node> shared() { return {owner_.shared_from_this(), this}; }
    /// Calls `function` on the strand: inside this call if the current thread runs the strand. Destroys `function`
    /// without a call if the context was shut down.
    template <class Function>
    void run(Function function)
    {
        bool is_here = false;
        const auto gate = gate_;
        gate->if_open([&] {
            const auto strand = owner_.executor();
            is_here = strand && colock::detail::is_on_strand(strand);
            if (strand && !is_here)
                asio::post(strand, std::move(function));
        });
        if (is_here)
            function();
    }
    /// Returns a completion that calls `done` on the strand.
    template <class Outcome>
    [[nodiscard]] completion<Outcome> on_strand(completion<Outcome> done)
    {
        return [self = shared(), done = std::move(done)](Outcome outcome) mutable {
            self->run(
                [self, done = std::move(done), outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
        };
    }

    /// Must be called before the first attempt to release a claim in the background, and `end_attempt` after it.
    /// Closing waits for such attempts. Returns the current epoch.
    [[nodiscard]] std::uint64_t begin_attempt();
    void end_attempt();
    /// Keeps a claim for which the attempt has failed, to try again later. Gives the claim up if the node was closed
    /// since `epoch`.
    /// \param epoch result of `begin_attempt` when the release of the claim began
    void keep(std::shared_ptr<node_claim> unreleased, std::uint64_t epoch);

    /// Tries the remaining claims for as long as the backend may take to answer, gives up the rest, and then closes the
    /// backend. Gives up nothing and does not close the backend once closes were cancelled.
    /// \param number the number of cancelled closes when this close began
    void close(lease_clock::duration deadline, std::uint64_t number, completion<close_outcome> done);
    /// Completes the closes that were cancelled.
    void end_closes();

    /// Destroys all handlers and claims. Called during the shutdown of the context.
    void drop_all() noexcept;

private:
    using node_claims = std::deque<std::shared_ptr<node_claim>>;

    void start_round();
    void on_attempt_ended(bool was_answered);
    void arm();
    void disarm();
    void on_timer();
    void close_if_done();
    void finish_close();

    adapter& owner_;
    const std::shared_ptr<colock::detail::context_gate> gate_;
    const std::shared_ptr<adapter> backend_;
    const std::atomic<std::uint64_t>& cancelled_closes_;
    const std::chrono::milliseconds operation_timeout_;
    const std::function<void(std::uint64_t)> on_given_up_;
    /// Claims in the order in which they are tried.
    node_claims kept_;
    /// The timer of the current wait. Its handler owns the timer, so that the timer does not outlive the context.
    std::weak_ptr<lease_timer> timer_;
    time_point armed_for_ = time_point::max();
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
    /// Number of the last close that has begun.
    std::uint64_t close_number_ = 0;
    time_point close_by_ = time_point::max();
    time_point give_up_by_ = time_point::max();
};

} // namespace colock::inline v0::quorum
