// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/command_operation.hpp"

#include "mongo/commands/statement_errors.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace colock::inline v0::mongo::detail {

namespace {

/// Maximum number of attempts of an update that conflicts with updates of other clients.
constexpr int max_attempts = 5;

} // namespace

void command_operation::fail(delivery request_state, failure_ptr failure)
{
    chain_.end(get_primary());
    // A read changes nothing, so its outcome is never unknown.
    if (!has_written() && failure->code == errc::outcome_unknown)
        failure = make_failure(errc::unavailable, failure->detail, failure->cause);
    failed(request_state, std::move(failure));
}

void command_operation::on_conflicts_exhausted()
{
    end_failed(
        delivery::answered, make_failure(errc::unavailable, "other clients wrote the same document in each attempt"));
}

void command_operation::send(document request, effect command_effect, callback_command::handler then)
{
    effect_ = std::max(effect_, command_effect);
    chain_.ask(get_primary(),
        std::make_shared<callback_command>(config().database, std::move(request), handler_for(std::move(then))));
}

void command_operation::send_confirmation(bool of_read, callback_command::handler then)
{
    chain_.ask(get_primary(),
        std::make_shared<callback_command>(config().database, confirm_command(config()),
            [self = boost::intrusive_ptr(this), of_read, then = std::move(then)](const answer& result) {
                const statement_errors errors(result.reply);
                const auto* const error = errors.find(0);
                // An error about types means that another program's document is stored where colock's should be. Then
                // the outcome is unknown.
                const answer& confirmation = error && !is_about_types(*error) ? *error : result;
                answer unconfirmed;
                unconfirmed.outcome = answer::kind::done;
                const bool is_accepted = of_read && self->get_primary().accepts_unconfirmed(confirmation);
                self->answered(is_accepted ? unconfirmed : confirmation, then);
            }));
}

callback_command::handler command_operation::handler_for(callback_command::handler then)
{
    return [self = boost::intrusive_ptr<command_operation>(this), then = std::move(then)](
               const answer& result) { self->answered(result, then); };
}

void command_operation::answered(const answer& result, const callback_command::handler& then)
{
    const operation_ptr kept(this);
    const command_chain::answer_scope guard(chain_);
    // Operations are sent only to a server that has passed the check.
    const auto found = is_raced_insert(result) ? verdict::conflict : judge(result, get_primary().no_change_code());
    if (found != verdict::done)
        get_primary().note_failure(result);
    switch (found) {
    case verdict::done:
        then(result);
        return;
    case verdict::conflict:
        if (++conflicts_ < max_attempts) {
            begin();
        } else if (is_raced_insert(result)) {
            // Other clients would hardly win each time, so the server may refuse the command for another reason.
            const auto failure = get_primary().failure_of_operation(result, effect_);
            end_failed(delivery::answered, make_failure(errc::unavailable, failure->detail, failure->cause));
        } else {
            on_conflicts_exhausted();
        }
        return;
    case verdict::later:
        owner_->queue().requeue(*this);
        return;
    case verdict::unknown:
        end_failed(delivery::unanswered, get_primary().failure_of_operation(result, effect_));
        return;
    case verdict::refused:
        end_failed(delivery::answered, get_primary().failure_of_operation(result, effect_));
        return;
    }
}

bool command_operation::begin_with_new_clock()
{
    if (std::exchange(clock_is_new_, true))
        return false;
    read_clock([this](const answer&) { begin(); });
    return true;
}

void command_operation::read_clock(callback_command::handler then)
{
    chain_.ask(get_primary(),
        get_primary().make_clock_command(handler_for([this, then = std::move(then)](const answer& result) {
            if (const auto refusal = get_primary().update_clock(result))
                answered(*refusal, {});
            else
                then(result);
        })));
}

std::int64_t command_operation::request_expiry() const noexcept
{
    return get_primary().clock().latest(saturating_add(deadline, std::chrono::seconds(1)));
}

server_time command_operation::time_of(const answer& result) const noexcept
{
    const auto& clock = get_primary().clock();
    return {.earliest = clock.earliest(result.sent_at), .latest = clock.latest(lease_clock::now())};
}

server_time command_operation::time_of_next() const noexcept
{
    const auto& clock = get_primary().clock();
    const auto now = lease_clock::now();
    return {.earliest = clock.earliest(now), .latest = clock.latest(now)};
}

failure_ptr too_late()
{
    return make_failure(errc::unavailable, "the request arrived too late by the server's clock");
}

std::int64_t ttl_value(std::chrono::milliseconds ttl) noexcept
{
    return ttl.count() == 0 ? std::numeric_limits<std::int64_t>::max() : ttl.count();
}

} // namespace colock::inline v0::mongo::detail
