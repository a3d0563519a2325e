// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/group_index.hpp"

#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <map>
#include <new>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

using std::chrono::milliseconds;

std::string entry_of(const settings& config, const claim& claim)
{
    std::string entry;
    token_text(claim).append_to(entry);
    lock_key(config, claim.key()).append_to(entry);
    return entry;
}

/// Runs a script on the index of a group, and then starts the next operation, if there is one.
class index_operation final : public script_operation
{
public:
    /// \param next a client operation, or null
    index_operation(operation_client& owner, const script& script, std::string_view group,
        std::vector<std::string> arguments, operation_ptr next)
        : script_operation(owner), script_(script), index_(group_key(config(), group).text()),
          arguments_(std::move(arguments)), next_(std::move(next))
    {
        slot = slot_of(index_);
        if (next_)
            deadline = next_->deadline;
    }

    [[nodiscard]] bool needs_sorted_sets() const noexcept override { return true; }
    [[nodiscard]] bool needs_replicas() const noexcept override { return next_ != nullptr; }
    [[nodiscard]] bool unwanted() const noexcept override { return next_ && next_->unwanted(); }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        std::vector<std::string> words{"1", index_};
        words.insert(words.end(), arguments_.begin(), arguments_.end());
        script_.push_words(request, form, std::move(words));
    }
    void answered() override
    {
        if (!next_)
            return;
        if (unconfirmed || !replies[0].is(reply::kind::number)) {
            next_->fail(delivery::unsent, unconfirmed ? unconfirmed : refusal(replies[0]));
            return;
        }
        next_->deadline = deadline;
        // The client that it was made for may not exist any more.
        static_cast<client_operation&>(*next_).send_to(owner(), false);
        owner().submit(std::move(next_));
    }
    void failed(delivery, failure_ptr failure) override
    {
        if (!next_)
            return;
        if (failure->code == errc::outcome_unknown)
            failure = make_failure(errc::unavailable, failure->detail, failure->cause);
        next_->fail(delivery::unsent, std::move(failure));
    }

    const script& script_;
    const std::string index_;
    const std::vector<std::string> arguments_;
    operation_ptr next_;
};

} // namespace

void append_entry(std::vector<std::string>& arguments, const settings& config, std::string entry, milliseconds ttl)
{
    // The lock is granted later, but within the operation timeout, and expires by the clock of another server. Clocks
    // may differ by `max_clock_lead`, which is at most a quarter of the ttl.
    if (ttl != milliseconds::zero())
        ttl += ttl / 4 + config.operation_timeout + std::chrono::seconds(1);
    arguments.push_back(std::move(entry));
    arguments.push_back(std::to_string(ttl.count()));
}

operation_ptr enter_before(
    operation_client& owner, std::span<const claim_ptr> claims, operation_ptr next, std::optional<milliseconds> new_ttl)
{
    std::map<std::string_view, std::vector<std::string>> indexes;
    for (const auto& each : claims) {
        if (!has_separate_index(owner.config(), *each))
            continue;
        const auto ttl = new_ttl.value_or(each->ttl());
        append_entry(indexes[each->owner().group], owner.config(), entry_of(owner.config(), *each), ttl);
    }
    for (auto& [group, arguments] : indexes)
        next = new index_operation(owner, scripts::get().enter_group, group, std::move(arguments), std::move(next));
    return next;
}

void leave_group(operation_client& owner, std::string_view group, std::vector<std::string> entries) noexcept
{
    try {
        owner.submit(
            operation_ptr(new index_operation(owner, scripts::get().leave_group, group, std::move(entries), nullptr)));
    } catch (const std::bad_alloc&) {
        // The entries stay until they expire. Those of locks without ttl stay forever.
    }
}

void leave_group(operation_client& owner, claim& ended) noexcept
{
    ended.mark_release_in_doubt();
    try {
        leave_group(owner, ended.owner().group, {entry_of(owner.config(), ended)});
    } catch (const std::bad_alloc&) {
        // As above.
    }
}

void leave_group_if_without_ttl(operation_client& owner, claim& refused) noexcept
{
    if (has_separate_index(owner.config(), refused) && refused.ttl() == refused.ttl().zero() && !refused.in_doubt())
        leave_group(owner, refused);
}

} // namespace colock::inline v0::redis::detail
