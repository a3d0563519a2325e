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

namespace colock::quorum {

class node_claim;

/// One master, and what has to be taken back from it: shares that nobody asks for any more, and that could not be
/// proven to be gone at the first attempt. They are tried again, a few at a time, until the node has answered for each,
/// or the latest expiry that it may know of has passed; while it is away, one timer runs, however many there are.
///
/// Thread safety: all members may be called from any thread.
class node final : public std::enable_shared_from_this<node>, public context_member
{
public:
    using time_point = lease_clock::time_point;

    /// \param patience how long the backend may take to answer.
    /// \param gave_up called with how many shares were let go of without proof.
    [[nodiscard]] static std::shared_ptr<node> make(std::shared_ptr<adapter> backend,
        std::chrono::milliseconds patience, std::function<void(std::uint64_t)> gave_up);
    node(std::shared_ptr<adapter> backend, std::chrono::milliseconds patience,
        std::function<void(std::uint64_t)> gave_up);

    [[nodiscard]] adapter& backend() const noexcept { return *backend_; }

    /// Counted around the first attempt to take an orphan back: closing waits for those that are under way.
    [[nodiscard]] std::uint64_t attempt_begins();
    void attempt_ends();
    /// The attempt has failed; it is made again later, unless the node was closed since it began in that `epoch`.
    void keep(std::shared_ptr<node_claim> left, std::uint64_t epoch);

    /// Tries what is left for as long as the backend may take to answer, gives up the rest, then closes the backend.
    void close(lease_clock::duration deadline, completion<closed> done);
    void cancel_close() noexcept;

    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

private:
    using node_claims = std::deque<std::shared_ptr<node_claim>>;

    void try_again();
    void on_tried(bool proven);
    void arm();
    void disarm();
    void on_timer(std::uint64_t number);
    void close_if_done();
    void finish_close();

    const std::shared_ptr<adapter> backend_;
    const std::chrono::milliseconds patience_;
    const std::function<void(std::uint64_t)> gave_up_;
    std::mutex mutex_;
    /// In the order in which they come round.
    node_claims kept_;
    std::optional<lease_timer> timer_;
    time_point armed_for_ = time_point::max();
    /// Of the wait that counts; the handler of an earlier one carries another number.
    std::uint64_t armed_ = 0;
    std::size_t attempts_ = 0;
    /// How often it was closed; what was being taken back then is given up, not kept.
    std::uint64_t epoch_ = 0;
    /// A round of attempts: how many are unanswered, and whether one was answered well.
    std::size_t in_round_ = 0;
    bool round_due_ = false;
    bool some_proven_ = false;
    std::vector<completion<closed>> closing_;
    time_point close_by_ = time_point::max();
    time_point give_up_by_ = time_point::max();
    bool dead_ = false;
};

} // namespace colock::quorum
