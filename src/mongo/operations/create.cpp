// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/lock_view.hpp"
#include "mongo/operations/claim_state.hpp"
#include "mongo/operations/command_operation.hpp"

#include <chrono>
#include <limits>
#include <utility>

namespace colock::mongo::detail {

namespace {

/// When nothing is seen that keeps it, and it was not granted.
constexpr auto look_again_in = std::chrono::milliseconds(5);
/// Between a raced upsert and the next.
constexpr int most_misses = 5;

class create_operation final : public command_operation
{
public:
    create_operation(client& owner, claim_ptr claim, completion<create_outcome> done)
        : command_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          owner_data_(to_document(claim_->owner()))
    {
    }

    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }

private:
    void begin() override
    {
        number_ = owner_->next_request();
        late_ = too_late();
        const auto token = claim_->token().hex();
        const auto& which = outlines();
        ask((claim_->ttl().count() == 0 ? which.without : which.with_ttl)
                .filled({{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token)},
                    {"x", ttl_value(claim_->ttl())}, {"l", late_}, {"e", number_}, {"o", &owner_data_},
                    {"n", most_holders()}, {"m", write_patience()}, {"v", std::string_view(owner_->name())}}),
            &create_operation::answered);
    }

    [[nodiscard]] const commands::create& outlines() const
    {
        const auto& all = commands::get();
        if (claim_->mode() == lock_mode::shared)
            return claim_->queues() ? all.shared_queues : all.shared_once;
        return claim_->queues() ? all.exclusive_queues : all.exclusive_once;
    }

    [[nodiscard]] std::int64_t most_holders() const noexcept
    {
        constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
        return claim_->max_holders() == 0 ? any : static_cast<std::int64_t>(claim_->max_holders());
    }

    void answered(const answer& got)
    {
        const auto view = lock_view::of_answer(got.reply);
        if (!view.exists()) {
            if (++misses_ < most_misses)
                begin();
            else
                outrun();
            return;
        }
        const auto token = claim_->token().hex();
        const auto* const held = view.find(token);
        if (held && held->request == number_) {
            const auto fence = static_cast<std::uint64_t>(held->fence);
            if (auto* const state = find_state(*claim_)) {
                state->granted = true;
                state->intends = false;
                state->source.reset();
            }
            end();
            done_(create_outcome::granted(fence));
            return;
        }
        const auto now = talks().clock().at(lease_clock::now());
        const auto free_at = view.free_at(*claim_, now);
        // It was too late, or the clock that says so is not what it was.
        if ((held || free_at == 0) && begin_with_new_clock())
            return;
        busy(view, free_at > now ? std::chrono::milliseconds(free_at - now) : look_again_in);
    }

    void busy(const lock_view& view, std::chrono::milliseconds retry_after)
    {
        auto& state = state_of(*claim_);
        state.granted = view.find(claim_->token().hex()) != nullptr;
        state.intends = view.writer() == claim_->token().hex();
        std::string holder(view.owner());
        // One without a ttl does not expire.
        if (retry_after > std::chrono::hours(24 * 3650))
            retry_after = std::chrono::milliseconds::zero();
        end();
        done_(create_outcome::busy(retry_after, std::move(holder)));
    }

    void outrun() override
    {
        state_of(*claim_).granted = false;
        end();
        done_(create_outcome::busy(look_again_in));
    }

    void failed(delivery how, failure_ptr why) override
    {
        if (how == delivery::unanswered) {
            auto& state = state_of(*claim_);
            state.doubt(late_);
            state.intends = state.intends || (claim_->queues() && claim_->mode() == lock_mode::exclusive);
        }
        done_(create_outcome::failed(std::move(why)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    const document owner_data_;
    std::int64_t number_ = 0;
    std::int64_t late_ = 0;
    int misses_ = 0;
};

} // namespace

operation_ptr make_create(client& owner, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new create_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::mongo::detail
