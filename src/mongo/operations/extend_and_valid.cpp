// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/operations/claim_state.hpp"
#include "mongo/operations/command_operation.hpp"
#include "mongo/templates/lock_view.hpp"

#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// An operation of a holder on its lock: an extension, or a check whether the lock is held. The check writes as well,
/// because a former primary could answer a read from old data.
class holder_operation : public command_operation
{
public:
    holder_operation(operation_client& owner, claim_ptr claim) : command_operation(owner), claim_(std::move(claim)) {}

protected:
    [[nodiscard]] virtual const command_template& get_command() const = 0;
    [[nodiscard]] virtual std::int64_t ttl() const noexcept { return 0; }
    /// Called when it is certain whether the lock is held.
    virtual void on_result(bool held) = 0;

    [[nodiscard]] bool is_shared() const noexcept { return claim_->mode() == lock_mode::shared; }

private:
    void begin() final
    {
        number_ = owner_->next_request();
        const auto token = claim_->token().hex();
        ask(get_command().filled({{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token)},
                {"x", ttl()}, {"l", request_expiry()}, {"e", number_}, {"m", write_concern_timeout()}}),
            &holder_operation::answered);
    }

    void answered(const answer& result)
    {
        const auto view = lock_view::of_answer(result.reply);
        const auto* const held = view.find(claim_->token().hex());
        if (held && held->request == number_) {
            end();
            on_result(true);
        } else if (!held) {
            confirm<holder_operation>(&holder_operation::on_confirmed);
        } else if (!begin_with_new_clock()) {
            if (held->expires <= time_of(result).earliest)
                confirm<holder_operation>(&holder_operation::on_confirmed);
            else
                end_failed(delivery::answered, too_late());
        }
    }

    void on_confirmed(const answer&)
    {
        end();
        on_result(false);
    }

    const claim_ptr claim_;
    std::int64_t number_ = 0;
};

class extend_operation final : public holder_operation
{
public:
    extend_operation(
        operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
        : holder_operation(owner, std::move(claim)), ttl_(ttl), done_(std::move(done))
    {
    }

private:
    [[nodiscard]] const command_template& get_command() const override
    {
        const auto& forms = is_shared() ? commands::get().extend_shared : commands::get().extend_exclusive;
        return ttl_.count() == 0 ? forms.without_ttl : forms.with_ttl;
    }
    [[nodiscard]] std::int64_t ttl() const noexcept override { return ttl_value(ttl_); }
    void on_result(bool held) override { done_({held ? extend_status::extended : extend_status::not_held, nullptr}); }
    void failed(delivery, failure_ptr failure) override { done_({extend_status::failed, std::move(failure)}); }

    const std::chrono::milliseconds ttl_;
    completion<extend_outcome> done_;
};

class valid_operation final : public holder_operation
{
public:
    valid_operation(operation_client& owner, claim_ptr claim, completion<valid_outcome> done)
        : holder_operation(owner, std::move(claim)), done_(std::move(done))
    {
    }

private:
    [[nodiscard]] const command_template& get_command() const override
    {
        return is_shared() ? commands::get().touch_shared : commands::get().touch_exclusive;
    }
    void on_result(bool held) override { done_({held, nullptr}); }
    void failed(delivery, failure_ptr failure) override { done_({false, std::move(failure)}); }

    completion<valid_outcome> done_;
};

} // namespace

operation_ptr make_extend(
    operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    return operation_ptr(new extend_operation(owner, std::move(claim), ttl, std::move(done)));
}

operation_ptr make_is_valid(operation_client& owner, claim_ptr claim, completion<valid_outcome> done)
{
    return operation_ptr(new valid_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
