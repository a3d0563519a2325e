// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

/// Passes all operations to the backend below. The first create or create_all is executed, and its answer is
/// `outcome_unknown` with a spent claim: the claim cannot be used for another attempt. Redis answers like this if a
/// grant without a fence has to be undone and the undo is not answered.
class undoing_adapter final : public adapter
{
public:
    explicit undoing_adapter(std::shared_ptr<adapter> below) : adapter(below->executor()), below_(std::move(below)) {}
    adapter_traits traits() const noexcept override { return below_->traits(); }
    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        const bool is_undone = !std::exchange(has_undone_, true);
        below_->start_create(claim, [claim, is_undone, done = std::move(done)](create_outcome outcome) mutable {
            if (is_undone) {
                claim->mark_release_in_doubt();
                outcome = create_outcome::failed(make_failure(errc::outcome_unknown, "the undo was not answered"));
            }
            done(std::move(outcome));
        });
    }
    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        below_->start_release(claim, guarantee, std::move(done));
    }
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override
    {
        below_->start_extend(claim, ttl, std::move(done));
    }
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        below_->start_is_valid(claim, std::move(done));
    }
    void start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done) override
    {
        below_->start_wait(claim, until, std::move(done));
    }
    void cancel_wait(claim& claim) noexcept override { below_->cancel_wait(claim); }
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        below_->start_hand_over(held, next, std::move(done));
    }
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override
    {
        const bool is_undone = !std::exchange(has_undone_, true);
        below_->start_create_all(
            claims, [claims, is_undone, done = std::move(done)](create_all_outcome outcome) mutable {
                if (is_undone) {
                    for (const auto& each : claims)
                        each->mark_release_in_doubt();
                    outcome = {.status = create_status::failed,
                        .refusal =
                            create_outcome::failed(make_failure(errc::outcome_unknown, "the undo was not answered"))};
                }
                done(std::move(outcome));
            });
    }

private:
    const std::shared_ptr<adapter> below_;
    bool has_undone_ = false;
};

} // namespace colock::testing
