// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/operations/coroutine_operation.hpp"
#include "mongo/operations/shared_read.hpp"
#include "mongo/templates/lock_view.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::mongo::detail {

namespace {

/// Finds or removes holders by the server's clock. The first command asks for the server's time.
class timed_operation : public coroutine_operation
{
public:
    timed_operation(operation_client& owner, completion<list_outcome> done)
        : coroutine_operation(owner), done_(std::move(done))
    {
    }

protected:
    void finish(std::string next = {})
    {
        end();
        done_({std::move(found_), nullptr, std::move(next)});
    }
    void failed(delivery, failure_ptr failure) override { done_({std::move(found_), std::move(failure), {}}); }
    /// \param result the answer that contains `fields`
    void add(const answer& result, const bson_iter_t& fields, holders selection)
    {
        std::ranges::move(read_holders(fields, selection, time_of(result)), std::back_inserter(found_));
    }

    std::vector<lock_status> found_;

private:
    completion<list_outcome> done_;
};

/// Finds the document in `value` of an answer.
bool find_value(const answer& result, bson_iter_t& into)
{
    return bson_iter_init_find(&into, result.reply.get(), "value") && BSON_ITER_HOLDS_DOCUMENT(&into);
}

class key_inspection final : public key_reader
{
public:
    key_inspection(operation_client& owner, filter filter, completion<list_outcome> done)
        : key_reader(owner, *filter.key), filter_(std::move(filter)), done_(std::move(done))
    {
    }

private:
    [[nodiscard]] bool on_document(const answer& result, const bson_iter_t& fields) override
    {
        if (is_foreign(fields)) {
            end_failed(delivery::answered, foreign_document());
            return true;
        }
        auto found = read_holders(fields, holders::live, time_of(result));
        std::erase_if(found, [this](const lock_status& each) { return !filter_.matches(each); });
        if (found.empty())
            return false;
        finish(std::move(found));
        return true;
    }
    void on_not_held() override { finish({}); }
    void finish(std::vector<lock_status> found)
    {
        end();
        done_({std::move(found), nullptr, {}});
    }
    void failed(delivery, failure_ptr failure) override { done_({{}, std::move(failure), {}}); }

    const filter filter_;
    completion<list_outcome> done_;
};

/// Removes the holders that a read has found, by their tokens. A holder that comes after the read keeps the lock,
/// however late the removal arrives.
class break_operation final : public timed_operation
{
public:
    break_operation(operation_client& owner, std::string key, completion<list_outcome> done)
        : timed_operation(owner, std::move(done)), key_(std::move(key))
    {
    }

private:
    coroutine run() override
    {
        co_await clock_reply();
        found_.clear();
        // A removal that was not started is sent again for the same holders. Holders that came after the read stay.
        if (named_.empty()) {
            const answer& result = co_await reply_to_read(find_command(config(), key_query(key_), 1));
            if (!name_holders(result)) {
                end_failed(delivery::answered, foreign_document());
                co_return;
            }
        }
        if (!named_.empty())
            note_removed(co_await reply_to(removal()));
        if (found_.empty())
            co_await confirmation();
        finish();
    }

    /// Returns false if the document belongs to another program.
    [[nodiscard]] bool name_holders(const answer& result)
    {
        bool met_foreign = false;
        for_each_document(result.reply, [&](const bson_iter_t& each) {
            met_foreign = is_foreign(each);
            for (auto& holder : read_known_holders(each, holders::live, time_of(result)))
                named_.insert(std::move(holder.token));
        });
        return !met_foreign;
    }
    [[nodiscard]] document removal() const
    {
        document tokens;
        std::size_t count = 0;
        for (const auto& each : named_) {
            const index_name name(count++);
            bson_append_utf8(tokens.get(), name.text(), name.size(), each.data(), static_cast<int>(each.size()));
        }
        return commands::get().remove_named.filled(
            {{"c", collection()}, {"k", bytes{key_}}, {"a", array{&tokens}}, {"m", write_concern_timeout()}});
    }
    void note_removed(const answer& result)
    {
        bson_iter_t value;
        if (!find_value(result, value))
            return;
        for (auto& holder : read_known_holders(value, holders::live, time_of(result))) {
            if (named_.contains(holder.token))
                found_.push_back(std::move(holder.status));
        }
    }

    const std::string key_;
    /// Tokens of the holders that the read has found.
    std::set<std::string> named_;
};

class page final : public timed_operation
{
public:
    page(operation_client& owner, filter filter, page_start from, completion<list_outcome> done)
        : timed_operation(owner, std::move(done)), filter_(std::move(filter)), from_(std::move(from))
    {
    }

private:
    coroutine run() override
    {
        co_await clock_reply();
        found_.clear();
        const answer& result =
            co_await reply_to_read(find_command(config(), list_query(filter_, from_, time_of_next()), page_size));
        std::int64_t count = 0;
        page_start next = from_;
        for_each_document(result.reply, [&](const bson_iter_t& each) {
            ++count;
            next.move_after(key_of(each));
            add(result, each, holders::live);
        });
        // Binary keys follow the last text.
        if (may_have_more(result.reply, count, page_size) || next.skip_to_binary_keys()) {
            finish(next.cursor());
        } else {
            co_await read_confirmation();
            finish();
        }
    }

    const filter filter_;
    const page_start from_;
};

class purge_operation final : public timed_operation
{
public:
    purge_operation(operation_client& owner, std::size_t limit, page_start from, completion<list_outcome> done)
        : timed_operation(owner, std::move(done)),
          limit_(std::min<std::int64_t>(page_size, static_cast<std::int64_t>(limit))), from_(std::move(from))
    {
    }

private:
    coroutine run() override
    {
        co_await clock_reply();
        // On a slow server, a step ends early, so that it is answered in time.
        const auto ends_at = lease_clock::now() + config().operation_timeout / 4;
        std::vector<std::string> keys;
        const answer& result =
            co_await reply_to_read(find_command(config(), expired_query(from_, time_of_next().earliest), limit_));
        for_each_document(result.reply, [&](const bson_iter_t& each) { keys.push_back(key_of(each)); });
        const bool was_full = may_have_more(result.reply, std::ssize(keys), limit_);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (std::ssize(found_) >= limit_ || (i > 0 && lease_clock::now() >= ends_at)) {
                finish(from_.cursor());
                co_return;
            }
            const answer& removed = co_await reply_to(removal_of(keys[i]));
            if (bson_iter_t value; find_value(removed, value))
                add(removed, value, holders::expired);
            from_.move_after(std::move(keys[i]));
        }
        if (was_full || from_.skip_to_binary_keys()) {
            finish(from_.cursor());
        } else {
            co_await reply_to(forget_command());
            finish();
        }
    }

    [[nodiscard]] document removal_of(const std::string& key) const
    {
        return commands::get().remove_expired.filled(
            {{"c", collection()}, {"k", bytes{key}}, {"m", write_concern_timeout()}});
    }
    [[nodiscard]] document forget_command() const
    {
        // This is a lower bound of the server's time, so that no document is deleted too early: the fences of a deleted
        // key start again from the server's clock.
        const auto time = get_primary().clock().last_reported();
        return commands::get().forget.filled({{"c", collection()}, {"p", date{time - config().purge_after.count()}},
            {"y", time}, {"z", time - 3'600'000}, {"m", write_concern_timeout()}});
    }

    /// Maximum number of documents, and of holders.
    const std::int64_t limit_;
    page_start from_;
};

} // namespace

operation_ptr make_listing(
    operation_client& owner, listing_request request, page_start from, completion<list_outcome> done)
{
    if (request.action == listing_action::break_key)
        return operation_ptr(new break_operation(owner, *std::move(request.filter.key), std::move(done)));
    if (request.action == listing_action::purge)
        return operation_ptr(new purge_operation(owner, request.limit, std::move(from), std::move(done)));
    if (request.filter.key)
        return operation_ptr(new key_inspection(owner, std::move(request.filter), std::move(done)));
    return operation_ptr(new page(owner, std::move(request.filter), std::move(from), std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
