// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/lock_view.hpp"
#include "mongo/operations/claim_state.hpp"
#include "mongo/operations/command_operation.hpp"

#include <utility>

namespace colock::mongo::detail {

namespace {

/// A token is refused for that much longer than a create may be under way: a member's clock may be behind.
constexpr std::int64_t patience_with_clocks = 60'000;

class give_back_operation : public command_operation
{
public:
    give_back_operation(client& owner, claim_ptr claim, completion<release_outcome> done)
        : command_operation(owner), claim_(std::move(claim)), token_(claim_->token().hex()), done_(std::move(done))
    {
    }

protected:
    void over(release_status what, bool others_wait = false)
    {
        if (auto* const state = find_state(*claim_)) {
            state->granted = false;
            state->intends = false;
            state->source.reset();
        }
        end();
        done_({what, nullptr, others_wait});
    }
    void confirmed(const answer&) { over(release_status::not_held); }

    const claim_ptr claim_;
    const std::string token_;

private:
    void failed(delivery, failure_ptr why) final { done_({release_status::failed, std::move(why)}); }

    completion<release_outcome> done_;
};

class release_operation final : public give_back_operation
{
public:
    using give_back_operation::give_back_operation;

private:
    void begin() override
    {
        const auto& all = commands::get();
        const auto& which = claim_->mode() == lock_mode::shared ? all.release_shared : all.release_exclusive;
        ask(which.filled({{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token_)},
                {"m", write_patience()}}),
            &release_operation::answered);
    }

    void answered(const answer& got)
    {
        const auto view = lock_view::of_answer(got.reply);
        if (view.exists() && !view.find(token_))
            over(release_status::released, view.others_wait(owner_->name(), talks().clock().at(lease_clock::now())));
        else
            confirm<give_back_operation>(&release_operation::confirmed);
    }
};

class abandon_operation final : public give_back_operation
{
public:
    using give_back_operation::give_back_operation;

private:
    void begin() override
    {
        const auto& all = commands::get();
        const auto* const state = find_state(*claim_);
        doubted_ = state ? state->in_doubt_until : 0;
        ask((doubted_ > 0 ? all.refuse : all.withdraw)
                .filled({{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token_)},
                    {"b", doubted_ + patience_with_clocks}, {"m", write_patience()}}),
            &abandon_operation::answered);
    }

    void answered(const answer& got)
    {
        if (auto* const state = find_state(*claim_))
            state->in_doubt_until = 0;
        const auto view = lock_view::of_answer(got.reply);
        const auto* const held = view.find(token_);
        const auto now = talks().clock().at(lease_clock::now());
        if (held && held->expires > now)
            over(release_status::released);
        else if (held || doubted_ > 0 || view.writer() == token_)
            over(release_status::not_held);
        else
            confirm<give_back_operation>(&abandon_operation::confirmed);
    }

    std::int64_t doubted_ = 0;
};

} // namespace

operation_ptr make_give_back(client& owner, claim_ptr claim, completion<release_outcome> done, promise given)
{
    if (given == promise::for_good)
        return operation_ptr(new abandon_operation(owner, std::move(claim), std::move(done)));
    return operation_ptr(new release_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::mongo::detail
