// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/operations/batchable_operation.hpp"
#include "mongo/operations/claim_state.hpp"
#include "mongo/templates/lock_view.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// A token is refused for this much longer than a create may be in progress, because the clock of another member may be
/// behind.
constexpr std::int64_t max_clock_difference = 60'000;

template <class Base>
class release_operation_base : public Base
{
public:
    release_operation_base(operation_client& owner, claim_ptr claim, completion<release_outcome> done)
        : Base(owner), claim_(std::move(claim)), token_(claim_->token().hex()), done_(std::move(done))
    {
    }
    release_operation_base(operation_client& owner, std::string token, completion<release_outcome> done)
        : Base(owner), token_(std::move(token)), done_(std::move(done))
    {
    }

protected:
    void finish(release_status status, bool others_wait = false)
    {
        if (auto* const state = claim_ ? find_state(*claim_) : nullptr) {
            state->granted = false;
            state->is_waiting_writer = false;
            state->source.reset();
        }
        this->end();
        done_({status, nullptr, others_wait});
    }
    void on_confirmed(const answer&) { finish(release_status::not_held); }

    /// Null for a release by token, of a lock that any client may hold.
    const claim_ptr claim_;
    const std::string token_;

private:
    void failed(delivery, failure_ptr failure) final { done_({release_status::failed, std::move(failure)}); }

    completion<release_outcome> done_;
};

class release_operation final : public release_operation_base<batchable_operation>
{
public:
    release_operation(operation_client& owner, claim_ptr claim, completion<release_outcome> done)
        : release_operation_base(owner, std::move(claim), std::move(done)), mode_(claim_->mode())
    {
    }
    release_operation(operation_client& owner, const known_holder& other, completion<release_outcome> done)
        : release_operation_base(owner, other.token, std::move(done)), others_key_(other.status.key),
          mode_(other.status.mode)
    {
    }

private:
    [[nodiscard]] std::string_view key() const noexcept override { return claim_ ? claim_->key() : others_key_; }
    [[nodiscard]] bool is_release() const noexcept override { return true; }
    /// If another claim of this process waits for the lock, the document must show whether other processes wait, too.
    [[nodiscard]] bool needs_document() const override { return claim_ && claim_->has_local_waiters(); }
    [[nodiscard]] bool is_shared() const noexcept { return mode_ == lock_mode::shared; }

    void begin() override
    {
        const auto& all = commands::get();
        const auto& form = is_shared() ? all.release_shared : all.release_exclusive;
        ask(form.filled({{"c", collection()}, {"k", bytes{key()}}, {"t", std::string_view(token_)},
                {"m", write_concern_timeout()}}),
            &release_operation::on_reply);
    }
    void write(bson_t& to) override
    {
        const auto& all = commands::get();
        const auto& form = is_shared() ? all.batched_release_shared : all.batched_release_exclusive;
        form.append_to(to, {{"k", bytes{key()}}, {"t", std::string_view(token_)}});
    }

    [[nodiscard]] std::string statement_kind() const override { return is_shared() ? "release" : ""; }
    void write_for(std::span<batchable_operation* const> all, bson_t& to) override
    {
        document tokens;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const index_name name(i);
            const auto& token = static_cast<release_operation&>(*all[i]).token_;
            bson_append_utf8(tokens.get(), name.text(), name.size(), token.data(), static_cast<int>(token.size()));
        }
        commands::get().batched_release_several.append_to(
            to, {{"k", bytes{key()}}, {"a", array{&tokens}}, {"q", static_cast<std::int64_t>(all.size())}});
    }

    void on_reply(const answer& result)
    {
        const auto view = lock_view::of_answer(result.reply);
        if (view.exists() && !view.find(token_))
            on_document(view);
        else
            confirm<release_operation_base>(&release_operation::on_confirmed);
    }
    void on_refused() override { begin(); }
    void on_done() override { finish(release_status::released); }
    void on_document(const lock_view& now) override
    {
        finish(release_status::released,
            now.others_wait(owner_->name(), get_primary().clock().latest(lease_clock::now())));
    }
    void on_document_unknown(const answer& result) override
    {
        get_primary().note_failure(result);
        finish(release_status::released);
    }

    const std::string others_key_;
    const lock_mode mode_;
};

class abandon_operation final : public release_operation_base<command_operation>
{
public:
    using release_operation_base::release_operation_base;

private:
    void begin() override
    {
        const auto& all = commands::get();
        const auto* const state = find_state(*claim_);
        in_doubt_until_ = state ? state->in_doubt_until : 0;
        ask((in_doubt_until_ > 0 ? all.refuse : all.withdraw)
                .filled({{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token_)},
                    {"b", in_doubt_until_ + max_clock_difference}, {"m", write_concern_timeout()}}),
            &abandon_operation::answered);
    }

    void answered(const answer& result)
    {
        const auto view = lock_view::of_answer(result.reply);
        if (view.is_foreign()) {
            end_failed(delivery::answered, foreign_document());
            return;
        }
        if (auto* const state = find_state(*claim_))
            state->in_doubt_until = 0;
        const auto* const held = view.find(token_);
        if (held && held->expires > time_of(result).earliest)
            finish(release_status::released);
        else if (held || in_doubt_until_ > 0 || view.writer() == token_)
            finish(release_status::not_held);
        else
            confirm<release_operation_base>(&abandon_operation::on_confirmed);
    }

    std::int64_t in_doubt_until_ = 0;
};

} // namespace

operation_ptr make_release_by_token(
    operation_client& owner, const known_holder& other, completion<release_outcome> done)
{
    return operation_ptr(new release_operation(owner, other, std::move(done)));
}

operation_ptr make_release(
    operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee)
{
    if (guarantee == release_guarantee::settled)
        return operation_ptr(new abandon_operation(owner, std::move(claim), std::move(done)));
    return operation_ptr(new release_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
