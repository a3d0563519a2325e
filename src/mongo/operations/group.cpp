// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/operations/coroutine_operation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::mongo::detail {

namespace {

constexpr std::size_t statements_per_command = 100;

/// Collects the results of the operations on one group, and completes after the last one. Belongs to the strand.
class tally
{
public:
    tally(std::size_t parts, completion<group_outcome> done) : left_(parts), done_(std::move(done)) {}

    /// \param lock the lock that was released; nullopt: there was nothing to do, or the operation has
    /// failed
    /// \param failure why the operation has failed; null: it has not failed
    void add(std::optional<lock_status> lock, failure_ptr failure)
    {
        if (lock)
            outcome_.locks.push_back(std::move(*lock));
        if (failure && (!outcome_.error || failure->code == errc::outcome_unknown))
            outcome_.error = std::move(failure);
        if (--left_ > 0)
            return;
        // A partial result must not be reported as a failure that has changed nothing.
        if (outcome_.error && !outcome_.locks.empty() && outcome_.error->code != errc::outcome_unknown)
            outcome_.error = make_failure(errc::outcome_unknown, outcome_.error->detail, outcome_.error->cause);
        if (outcome_.error)
            outcome_.locks.clear();
        done_(std::move(outcome_));
    }

private:
    std::size_t left_;
    group_outcome outcome_;
    completion<group_outcome> done_;
};

/// Finds the members of a group. Releases are operations of their own, which share batches. Extensions share updates,
/// after which the members are read again.
class group_operation final : public coroutine_operation
{
public:
    group_operation(operation_client& owner, std::string id, group_action action, std::chrono::milliseconds ttl,
        completion<group_outcome> done)
        : coroutine_operation(owner), filter_{.group = std::move(id)}, action_(action), ttl_(ttl),
          done_(std::move(done))
    {
    }

private:
    using holder_list = std::vector<known_holder>;

    coroutine run() override
    {
        co_await clock_reply();
        holder_list members;
        co_await find_members(members);
        if (members.empty())
            finish({});
        else if (action_ == group_action::extend)
            co_await extend(std::move(members));
        else
            release(members);
    }

    coroutine find_members(holder_list& into)
    {
        page_start from;
        bool has_more = true;
        while (has_more) {
            const answer& result =
                co_await reply_to_read(find_command(config(), list_query(filter_, from, time_of_next()), page_size));
            std::int64_t count = 0;
            for_each_document(result.reply, [&](const bson_iter_t& each) {
                ++count;
                from.move_after(key_of(each));
                for (auto& holder : read_known_holders(each, holders::live, time_of(result))) {
                    if (filter_.matches(holder.status))
                        into.push_back(std::move(holder));
                }
            });
            // After the last key that is text, the pages continue with the binary keys.
            has_more = may_have_more(result.reply, count, page_size) || from.skip_to_binary_keys();
        }
        co_await read_confirmation();
    }
    void finish(group_outcome outcome)
    {
        end();
        done_(std::move(outcome));
    }

    coroutine extend(holder_list members)
    {
        const auto without_ttl = std::ranges::find_if(members, [](const auto& each) { return !each.status.remaining; });
        if (without_ttl != members.end()) {
            finish({.error = make_failure(errc::invalid_ttl, "the lock " + without_ttl->status.key + " has no ttl")});
            co_return;
        }
        for (std::span<const known_holder> rest(members); !rest.empty();) {
            const auto part = rest.first(std::min(rest.size(), statements_per_command));
            rest = rest.subspan(part.size());
            co_await reply_to(extend_command(part));
        }
        // A member that is still held was extended, because it was held before as well.
        holder_list found;
        co_await find_members(found);
        std::set<std::string> held;
        for (auto& each : found)
            held.insert(std::move(each.token));
        group_outcome outcome;
        for (auto& each : members) {
            if (held.contains(each.token))
                outcome.locks.push_back(std::move(each.status));
        }
        finish(std::move(outcome));
    }
    [[nodiscard]] document extend_command(std::span<const known_holder> part) const
    {
        const auto& command_set = commands::get();
        batch_update update(config());
        for (const auto& each : part) {
            const auto& statement = each.status.mode == lock_mode::shared ? command_set.extend_group_shared
                                                                          : command_set.extend_group_exclusive;
            update.add([&](bson_t& to) {
                statement.append_to(
                    to, {{"k", bytes{each.status.key}}, {"t", std::string_view(each.token)}, {"x", ttl_value(ttl_)}});
            });
        }
        return update.take();
    }

    void release(const holder_list& members)
    {
        end();
        const auto all = std::make_shared<tally>(members.size(), std::move(done_));
        for (const auto& each : members)
            owner_->submit(release_of(each, all));
    }
    [[nodiscard]] operation_ptr release_of(const known_holder& member, const std::shared_ptr<tally>& all) const
    {
        return make_release_by_token(*owner_, member, [all, status = member.status](release_outcome outcome) mutable {
            if (outcome.status == release_status::released)
                all->add(std::move(status), nullptr);
            else
                all->add(std::nullopt, std::move(outcome.error));
        });
    }
    void failed(delivery, failure_ptr failure) override
    {
        // A partial result must not be reported as a failure that has changed nothing.
        if (has_written() && failure->code != errc::outcome_unknown)
            failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        done_({.error = std::move(failure)});
    }

    const filter filter_;
    const group_action action_;
    const std::chrono::milliseconds ttl_;
    completion<group_outcome> done_;
};

} // namespace

operation_ptr make_group_action(operation_client& owner, std::string id, group_action action,
    std::chrono::milliseconds ttl, completion<group_outcome> done)
{
    return operation_ptr(new group_operation(owner, std::move(id), action, ttl, std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
