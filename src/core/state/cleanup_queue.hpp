// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/deferred_actions.hpp"
#include "core/state/shard.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace colock::detail {

/// What is given back, from the moment nobody holds it any more to the proof that nothing of it is left: the release or
/// hand-over, what is tried again, and what a shutdown gives up.
///
/// Thread safety: guarded by the shard's mutex.
class cleanup_queue
{
public:
    using time_point = lease_clock::time_point;

    explicit cleanup_queue(shard& of) : shard_(of) {}
    cleanup_queue(const cleanup_queue&) = delete;
    cleanup_queue& operator=(const cleanup_queue&) = delete;

    /// Whom it keeps while something is being given back that no handle owns any more.
    void owned_by(std::weak_ptr<core> owner) { owner_ = std::move(owner); }

    /// A request with this ttl is about to be sent, or was.
    static void may_stand(record& claim, std::chrono::milliseconds ttl) noexcept;
    /// It has begun to end; from now on it is kept here.
    void enter(record& ending);
    /// As soon as nothing of it is under way: to the next in line, or to the backend.
    void give_back(record& ending, deferred_actions& actions);
    void on_given_back(record& subject, release_outcome&& outcome, deferred_actions& actions);
    /// \param proven nothing of it is left for certain.
    void end(record& ending, bool proven, deferred_actions& actions);
    /// The last owner of `ending` leaves, and the core must outlive the clean-up.
    void keep_until_ended(const record& ending);

    /// All of them end now, unproven.
    void give_up(deferred_actions& actions);
    /// The same, and their keys are what a shutdown has left behind.
    const std::vector<std::string>& leave_behind(deferred_actions& actions);
    /// The parent goes on with them: takes one out, null after the last.
    [[nodiscard]] record::ptr drop_after_fork(deferred_actions& actions);

    [[nodiscard]] bool empty() const noexcept { return ending_.empty(); }
    /// Told when something has ended that a shutdown waits for, here or elsewhere.
    [[nodiscard]] plain_condition& drained() noexcept { return drained_; }

private:
    void retry_later(record& ending, deferred_actions& actions);
    [[nodiscard]] time_point unproven_after(const record& ending) const noexcept;

    shard& shard_;
    std::weak_ptr<core> owner_;
    std::shared_ptr<core> kept_;
    /// Each member is kept alive by a reference of its own.
    record_list ending_;
    /// Keys of what shutdowns have given up.
    std::vector<std::string> left_behind_;
    plain_condition drained_;
};

} // namespace colock::detail
