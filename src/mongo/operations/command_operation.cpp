// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/command_operation.hpp"

#include "mongo/commands/batch.hpp"

#include <chrono>
#include <limits>

namespace colock::mongo::detail {

namespace {

/// Of an update that another was faster with, each time at once.
constexpr int most_conflicts = 5;

} // namespace

void command_operation::fail(delivery how, failure_ptr why)
{
    client_.end(talks());
    failed(how, std::move(why));
}

void command_operation::outrun()
{
    end_failed(delivery::answered, make_failure(errc::unavailable, "others write the same document all the time"));
}

void command_operation::send(document what, question::handler then)
{
    client_.ask(talks(), std::make_shared<question>(config().database, std::move(what), told_to(std::move(then))));
}

void command_operation::send_confirmation(bool of_read, question::handler then)
{
    client_.ask(talks(),
        std::make_shared<question>(config().database, confirm_command(config()),
            [self = boost::intrusive_ptr<command_operation>(this), of_read, then = std::move(then)](const answer& got) {
                const statement_errors errors(got.reply);
                const auto* const error = errors.find(0);
                // One about types is of a document that stands where colock's should: nothing is known then.
                const answer& confirmation = error && !is_about_types(*error) ? *error : got;
                answer unconfirmed;
                unconfirmed.what = answer::kind::done;
                const bool is_accepted = of_read && self->talks().accepts_unconfirmed(confirmation);
                self->answered(is_accepted ? unconfirmed : confirmation, then);
            }));
}

question::handler command_operation::told_to(question::handler then)
{
    return [self = boost::intrusive_ptr<command_operation>(this), then = std::move(then)](
               const answer& got) { self->answered(got, then); };
}

void command_operation::answered(const answer& got, const question::handler& then)
{
    const operation_ptr kept(this);
    const conversation::telling guard(client_);
    const auto found = judge(got);
    if (found != verdict::done)
        talks().heard(got);
    switch (found) {
    case verdict::done:
        then(got);
        return;
    case verdict::conflict:
        if (++conflicts_ < most_conflicts)
            begin();
        else
            outrun();
        return;
    case verdict::later:
        owner_->queue().again(*this);
        return;
    case verdict::unknown:
        end_failed(delivery::unanswered, failure_of(got));
        return;
    case verdict::refused:
        end_failed(delivery::answered, failure_of(got, talks().no_change_code()));
        return;
    }
}

bool command_operation::begin_with_new_clock()
{
    if (std::exchange(clock_is_new_, true))
        return false;
    greet([this](const answer&) { begin(); });
    return true;
}

void command_operation::greet(question::handler then)
{
    client_.ask(talks(),
        std::make_shared<question>(command::dated_hello{}, told_to([this, then = std::move(then)](const answer& got) {
            if (const auto refused = talks().heard_hello(got))
                answered(*refused, {});
            else
                then(got);
        })));
}

std::int64_t command_operation::too_late() const noexcept
{
    return talks().clock().at(saturating_add(deadline, std::chrono::seconds(1)));
}

std::int64_t ttl_value(std::chrono::milliseconds ttl) noexcept
{
    return ttl.count() == 0 ? std::numeric_limits<std::int64_t>::max() : ttl.count();
}

} // namespace colock::mongo::detail
