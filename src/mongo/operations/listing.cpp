// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/joined_update.hpp"
#include "mongo/lock_view.hpp"
#include "mongo/operations/command_operation.hpp"
#include "mongo/operations/shared_read.hpp"
#include "mongo/query.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

namespace {

/// Documents of one page, or one step of a purge: their holders are told in one handler.
constexpr std::int64_t page_size = 256;

/// Of what the server's clock decides: it is asked first, each time that the operation begins.
class timed_operation : public command_operation
{
public:
    timed_operation(client& owner, completion<list_outcome> done) : command_operation(owner), done_(std::move(done)) {}

protected:
    virtual void begin_now() = 0;

    /// By the server's clock.
    [[nodiscard]] std::int64_t now() const noexcept { return talks().clock().at(lease_clock::now()); }
    void over(std::string next = {})
    {
        end();
        done_({std::move(found_), nullptr, std::move(next)});
    }
    void failed(delivery, failure_ptr why) override { done_({std::move(found_), std::move(why), {}}); }
    void add(const bson_iter_t& fields, holders which, const filter& wanted)
    {
        for (auto& each : read_holders(fields, which, now())) {
            if (wanted.matches(each))
                found_.push_back(std::move(each));
        }
    }

    std::vector<lock_status> found_;

private:
    void begin() final
    {
        greet([this] { begin_now(); });
    }

    completion<list_outcome> done_;
};

/// The document in an answer's `value`.
bool find_value(const answer& got, bson_iter_t& into)
{
    return bson_iter_init_find(&into, got.reply.get(), "value") && BSON_ITER_HOLDS_DOCUMENT(&into);
}

class key_inspection final : public key_reader
{
public:
    key_inspection(client& owner, std::string key, filter which, completion<list_outcome> done)
        : key_reader(owner, std::move(key)), filter_(std::move(which)), done_(std::move(done))
    {
    }

private:
    [[nodiscard]] bool hear_document(const bson_iter_t& fields) override
    {
        if (is_foreign(fields)) {
            end_failed(delivery::answered, foreign_document());
            return true;
        }
        auto found = read_holders(fields, holders::live, talks().clock().at(lease_clock::now()));
        std::erase_if(found, [this](const lock_status& each) { return !filter_.matches(each); });
        if (found.empty())
            return false;
        over(std::move(found));
        return true;
    }
    void hear_free() override { over({}); }
    void over(std::vector<lock_status> found)
    {
        end();
        done_({std::move(found), nullptr, {}});
    }
    void failed(delivery, failure_ptr why) override { done_({{}, std::move(why), {}}); }

    const filter filter_;
    completion<list_outcome> done_;
};

/// Removes the holders that a look has found, by their tokens: a holder that came after the look keeps the lock,
/// however late the removal arrives.
class break_operation final : public timed_operation
{
public:
    break_operation(client& owner, std::string key, completion<list_outcome> done)
        : timed_operation(owner, std::move(done)), key_(std::move(key))
    {
    }

private:
    void begin_now() override
    {
        found_.clear();
        is_removing_ = false;
        // A removal that was not begun is sent again for the same holders: those that came after the look stay.
        if (named_.empty())
            ask(find_command(config(), key_query(key_), 1), &break_operation::looked);
        else
            remove();
    }
    void looked(const answer& got)
    {
        bool met_foreign = false;
        for_each_document(got.reply, [&](const bson_iter_t& each) {
            met_foreign = is_foreign(each);
            for (auto& holder : read_known_holders(each, holders::live, now()))
                named_.insert(std::move(holder.token));
        });
        if (met_foreign)
            end_failed(delivery::answered, foreign_document());
        else if (named_.empty())
            confirm(&break_operation::found_nobody);
        else
            remove();
    }
    void remove()
    {
        document tokens;
        std::size_t count = 0;
        for (const auto& each : named_) {
            const index_name name(count++);
            bson_append_utf8(tokens.get(), name.text(), name.size(), each.data(), static_cast<int>(each.size()));
        }
        is_removing_ = true;
        ask(commands::get().remove_named.filled(
                {{"c", collection()}, {"k", bytes{key_}}, {"a", array{&tokens}}, {"m", write_patience()}}),
            &break_operation::removed);
    }
    void removed(const answer& got)
    {
        if (bson_iter_t value; find_value(got, value)) {
            for (auto& holder : read_known_holders(value, holders::live, now())) {
                if (named_.contains(holder.token))
                    found_.push_back(std::move(holder.status));
            }
        }
        if (!found_.empty()) {
            over();
            return;
        }
        is_removing_ = false;
        confirm(&break_operation::found_nobody);
    }
    void found_nobody(const answer&) { over(); }
    void failed(delivery how, failure_ptr why) override
    {
        // A look changes nothing.
        if (!is_removing_ && why->code == errc::outcome_unknown)
            why = make_failure(errc::unavailable, why->detail, why->cause);
        timed_operation::failed(how, std::move(why));
    }

    const std::string key_;
    /// Tokens of the holders that the look has found.
    std::set<std::string> named_;
    /// The removal was sent.
    bool is_removing_ = false;
};

class page final : public timed_operation
{
public:
    page(client& owner, filter which, page_start from, completion<list_outcome> done)
        : timed_operation(owner, std::move(done)), filter_(std::move(which)), from_(std::move(from))
    {
    }

private:
    void begin_now() override
    {
        found_.clear();
        ask(find_command(config(), list_query(filter_, from_, now()), page_size), &page::answered);
    }
    void answered(const answer& got)
    {
        std::int64_t count = 0;
        page_start next = from_;
        for_each_document(got.reply, [&](const bson_iter_t& each) {
            ++count;
            next.move_behind(key_of(each));
            add(each, holders::live, filter_);
        });
        // Behind the last text comes what is none.
        if (may_go_on(got.reply, count, page_size) || next.skip_text())
            over(next.text());
        else
            confirm_read(&page::confirmed_end);
    }
    void confirmed_end(const answer&) { over(); }

    const filter filter_;
    const page_start from_;
};

class purge_operation final : public timed_operation
{
public:
    purge_operation(client& owner, std::size_t limit, page_start from, completion<list_outcome> done)
        : timed_operation(owner, std::move(done)),
          limit_(limit == 0 ? page_size : std::min<std::int64_t>(page_size, static_cast<std::int64_t>(limit))),
          from_(std::move(from))
    {
    }

private:
    void begin_now() override
    {
        // On a slow server a step of fewer is answered in time, too.
        ends_at_ = lease_clock::now() + config().operation_timeout / 4;
        ask(find_command(config(), expired_query(from_, now()), limit_), &purge_operation::found);
    }

    void found(const answer& got)
    {
        keys_.clear();
        for_each_document(got.reply, [this](const bson_iter_t& each) { keys_.push_back(key_of(each)); });
        was_full_ = may_go_on(got.reply, std::ssize(keys_), limit_);
        next_ = 0;
        remove_next();
    }
    void remove_next()
    {
        if (next_ == keys_.size()) {
            all_removed();
        } else if (std::ssize(found_) >= limit_ || (next_ > 0 && lease_clock::now() >= ends_at_)) {
            over(from_.text());
        } else {
            ask(commands::get().remove_expired.filled(
                    {{"c", collection()}, {"k", bytes{keys_[next_]}}, {"m", write_patience()}}),
                &purge_operation::removed);
        }
    }
    void removed(const answer& got)
    {
        if (bson_iter_t value; find_value(got, value))
            add(value, holders::expired, {});
        from_.move_behind(std::move(keys_[next_++]));
        remove_next();
    }
    void all_removed()
    {
        if (was_full_ || from_.skip_text()) {
            over(from_.text());
            return;
        }
        // No later than it is: what is granted a fence by the clock relies on what was not forgotten.
        const auto time = talks().clock().told();
        ask(commands::get().forget.filled({{"c", collection()}, {"p", date{time - config().purge_after.count()}},
                {"y", time}, {"z", time - 3'600'000}, {"m", write_patience()}}),
            &purge_operation::forgotten);
    }
    void forgotten(const answer&) { over(); }

    /// Of documents, and of holders.
    const std::int64_t limit_;
    page_start from_;
    std::vector<std::string> keys_;
    std::size_t next_ = 0;
    bool was_full_ = false;
    lease_clock::time_point ends_at_{};
};

} // namespace

operation_ptr make_key_listing(
    client& owner, std::string key, key_purpose why, filter which, completion<list_outcome> done)
{
    if (why == key_purpose::remove)
        return operation_ptr(new break_operation(owner, std::move(key), std::move(done)));
    return operation_ptr(new key_inspection(owner, std::move(key), std::move(which), std::move(done)));
}

operation_ptr make_page(client& owner, filter which, page_start from, completion<list_outcome> done)
{
    return operation_ptr(new page(owner, std::move(which), std::move(from), std::move(done)));
}

operation_ptr make_purge(client& owner, std::size_t limit, page_start from, completion<list_outcome> done)
{
    return operation_ptr(new purge_operation(owner, limit, std::move(from), std::move(done)));
}

} // namespace colock::mongo::detail
