// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_check.hpp"

#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/templates/lock_view.hpp"
#include "mongo/templates/write_concern.hpp"

#include <colock/token.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Ttl of the locks that the check acquires, in milliseconds.
constexpr std::int64_t ttl = 60'000;
/// Maximum number of attempts of an update that conflicts with updates of other clients.
constexpr int max_attempts = 5;
constexpr auto wrong_outcome = "a statement that must fail succeeded, or a statement that must succeed failed";

bool find_inside(const bson_iter_t& fields, const char* path, bson_iter_t& into)
{
    bson_iter_t inside;
    return bson_iter_recurse(&fields, &inside) && bson_iter_find_descendant(&inside, path, &into);
}
bool is_true(const bson_iter_t& fields, const char* path)
{
    bson_iter_t found;
    return find_inside(fields, path, found) && bson_iter_as_bool(&found);
}
std::string text_at(const bson_iter_t& fields, const char* path)
{
    bson_iter_t found;
    return find_inside(fields, path, found) ? read_bytes(found) : std::string();
}

std::string reason_in_collections(const document& reply)
{
    std::string_view reason;
    for_each_document(reply, [&](const bson_iter_t& each) {
        bson_iter_t found;
        const auto collation = text_at(each, "options.collation.locale");
        if (find_inside(each, "options.timeseries", found))
            reason = is_time_series;
        else if (text_at(each, "type") == "view")
            reason = is_view;
        else if (is_true(each, "options.capped"))
            reason = is_capped;
        else if (!collation.empty() && collation != "simple")
            reason = has_collation;
    });
    return std::string(reason);
}

/// Returns a reason if a unique index allows only one lock. A sparse or partial index may have no entry for locks.
std::string reason_in_indexes(const document& reply)
{
    std::string reason;
    for_each_document(reply, [&](const bson_iter_t& each) {
        bson_iter_t found;
        if (is_true(each, "unique") && !is_true(each, "sparse") && !find_inside(each, "key._id", found) &&
            !find_inside(each, "partialFilterExpression", found))
            reason = has_unique_index(text_at(each, "name"));
    });
    return reason;
}

/// A command, and what its reply has to show.
struct check_step
{
    enum fact : unsigned
    {
        nothing = 0,
        foreign = 1,
        exists = 2,
        missing = 4,
        /// The first token holds the lock, and the number of its request is the number of this step.
        first_holds = 8,
        first_absent = 16,
        second_absent = 32,
        second_waits = 64,
    };

    const command_template& command;
    /// Whether the request contains the first of the two tokens, not the second.
    bool uses_first_token;
    std::int64_t number;
    /// Facts, combined by '|'.
    unsigned expected;
    /// Error if the reply does not show them.
    const char* failure;
};

unsigned facts_in(
    const lock_view& view, const std::string& first_token, const std::string& second_token, std::int64_t number)
{
    using enum check_step::fact;
    const auto* const held = view.find(first_token);
    const auto if_true = [](bool condition, check_step::fact which) { return condition ? which : nothing; };
    return if_true(view.is_foreign(), foreign) | if_true(view.exists(), exists) | if_true(!view.exists(), missing) |
           if_true(held && held->request == number && held->fence > 0, first_holds) | if_true(!held, first_absent) |
           if_true(!view.find(second_token), second_absent) | if_true(view.writer() == second_token, second_waits);
}

std::span<const check_step> all_steps()
{
    using enum check_step::fact;
    constexpr bool first = true;
    constexpr bool second = false;
    static const auto& all = commands::get();
    static const command_template removal(
        R"({"delete":"?c","deletes":[{"q":{"_id":"?k"},"limit":1}],)" + templates::write_concern + "}");
    static const check_step steps[] = {
        {all.refuse, first, 1, foreign, "a document of another program was taken for a lock"},
        // The reply shows the document after the command above and this one.
        {all.exclusive_queues.with_ttl, first, 1, foreign, "a document of another program was changed"},
        {removal, first, 1, nothing, nullptr},
        {all.first_exclusive_queues.with_ttl, first, 1, first_holds, "a free lock was not granted"},
        {all.first_exclusive_queues.with_ttl, second, 1, first_holds | second_absent,
            "a lock that is held was granted to another"},
        {all.shared_once.with_ttl, second, 1, first_holds | second_absent, "an exclusive lock was shared"},
        {all.extend_exclusive.with_ttl, first, 2, first_holds, "a lock was not extended"},
        {all.release_exclusive, first, 3, exists | first_absent, "a lock was not released"},
        {all.release_exclusive, first, 3, missing, "a lock was released twice"},
        {all.shared_once.with_ttl, first, 1, first_holds, "a lock was not shared"},
        {all.shared_once.with_ttl, second, 1, first_holds | second_absent, "a semaphore has more holders than it may"},
        {all.exclusive_queues.with_ttl, second, 1, first_holds | second_absent | second_waits,
            "a shared lock was granted to a writer"},
        {all.release_shared, first, 2, exists | first_absent, "a shared lock was not released"},
        {all.refuse, second, 2, second_waits, "the mark of a waiting writer was lost"},
        {all.exclusive_once.with_ttl, second, 3, exists | second_absent, "a token that was refused was granted a lock"},
        {removal, second, 0, nothing, nullptr},
    };
    return steps;
}

} // namespace

server_check::server_check(
    const settings& config, std::shared_ptr<connection_pool> pool, handler on_end, failure_handler on_failure)
    : config_(config), pool_(std::move(pool)), on_end_(std::move(on_end)), on_failure_(std::move(on_failure)),
      owner_(to_document({})), first_(token::generate().hex()), second_(token::generate().hex())
{
    bson_append_utf8(id_.get(), "c", -1, "check", -1);
    bson_append_utf8(id_.get(), "r", -1, first_.data(), static_cast<int>(first_.size()));
}

void server_check::stop() noexcept
{
    on_end_ = nullptr;
    on_failure_ = nullptr;
    if (const auto command = pending_.lock())
        command->drop();
}

void server_check::run(remote::coroutine which)
{
    // The check may end before `start` returns.
    const auto kept = shared_from_this();
    frame_ = std::move(which);
    frame_.start();
    suspension_.rethrow();
}

void server_check::send(const command_template& command, const std::string& token, std::int64_t number)
{
    const auto now = clock_.latest(lease_clock::now());
    auto filled = command.filled({{"c", std::string_view(config_.collection)}, {"k", &id_},
        {"t", std::string_view(token)}, {"u", std::string_view(second_)}, {"x", ttl}, {"l", now + ttl}, {"e", number},
        {"f", now}, {"o", &owner_}, {"n", std::int64_t{1}}, {"m", config_.operation_timeout.count()}, {"b", now + ttl},
        {"v", std::string_view(first_)}});
    auto next = std::make_shared<callback_command>(
        config_.database, std::move(filled), [self = shared_from_this()](const answer& result) {
            self->result_ = &result;
            self->suspension_.resume();
        });
    pending_ = next;
    pool_->ask(std::move(next), lease_clock::now() + config_.operation_timeout);
}

remote::coroutine server_check::check_all()
{
    // Many users have no right to list collections or indexes. Then an unsuitable collection is recognized by the
    // statements that it refuses.
    static const command_template list_collections(R"({"listCollections":1,"filter":{"name":"?c"}})");
    static const command_template list_indexes(R"({"listIndexes":"?c"})");
    co_await check_listing(list_collections, &reason_in_collections);
    if (!has_ended())
        co_await check_listing(list_indexes, &reason_in_indexes);
    if (!has_ended())
        co_await read_clock();
    if (!has_ended())
        co_await check_batch();
    if (!has_ended())
        co_await check_steps();
    end(nullptr);
}

remote::coroutine server_check::check_code()
{
    const auto& result = co_await answer_to(commands::get().check_code, first_, 1);
    if (read_code(result, statement_errors(result.reply)))
        co_await read_clock();
    end(nullptr);
}

remote::coroutine server_check::check_listing(
    const command_template& command, std::string (*find_reason)(const document& reply))
{
    const auto& result = co_await answer_to(command, first_);
    if (judge(result) == verdict::done) {
        if (const auto reason = find_reason(result.reply); !reason.empty())
            end(unsuitable_collection(reason));
    } else if (failure_of(result, changes_nothing, effect::reads)->code == errc::unavailable) {
        // Any other refusal means that the user may not list them, or that there are none yet.
        static_cast<void>(require_done(result));
    }
}

remote::coroutine server_check::read_clock()
{
    for (int attempt = 1;; ++attempt) {
        const auto& result = co_await answer_to(commands::get().clock, first_);
        const auto time = read_time(result.reply);
        // When inserts race, some servers reply without a document.
        const bool is_conflict = is_raced_insert(result) || judge(result) == verdict::conflict ||
                                 (result.outcome == answer::kind::done && !time);
        if (is_conflict && attempt < max_attempts)
            continue;
        if (!require_done(result))
            co_return;
        if (time)
            clock_.update(*time, result.sent_at, lease_clock::now());
        else
            fail_check("it does not return its time");
        co_return;
    }
}

bool server_check::read_code(const answer& result, const statement_errors& errors)
{
    if (result.outcome != answer::kind::done || lacks_confirmation(result))
        return require_done(result);
    const auto* const error = errors.find(0);
    if (error && has_other_meaning(error->code))
        return require_done(*error);
    if (!error) {
        fail_check(wrong_outcome);
        return false;
    }
    no_change_code_ = error->code;
    return true;
}

remote::coroutine server_check::check_batch()
{
    const auto& result = co_await answer_to(commands::get().check_batched, first_, 1);
    const statement_errors errors(result.reply);
    if (!read_code(result, errors))
        co_return;
    // Which statements of `check_batched` have to fail, in their order.
    constexpr std::array is_refused{true, false, true, true, false, true, false, true, true, true, false, false, true,
        false, true, false, true, false};
    bool is_right = errors.accounts_for(is_refused.size());
    for (std::size_t i = 0; i < is_refused.size(); ++i) {
        const auto* const error = errors.find(i);
        // A statement that has to succeed may fail with this code as well, if the server uses one code for all errors.
        if (error && (!is_refused[i] || error->code != no_change_code_) && !require_done(*error))
            co_return;
        is_right = is_right && is_refused[i] == (error != nullptr);
    }
    if (!is_right)
        fail_check(wrong_outcome);
}

remote::coroutine server_check::check_steps()
{
    for (const auto& each : all_steps()) {
        const auto& result = co_await answer_to(each.command, each.uses_first_token ? first_ : second_, each.number);
        if (!require_done(result))
            co_return;
        const auto facts = facts_in(lock_view::of_answer(result.reply), first_, second_, each.number);
        if ((facts & each.expected) != each.expected) {
            fail_check(each.failure);
            co_return;
        }
    }
}

bool server_check::require_done(const answer& result)
{
    if (judge(result) == verdict::done)
        return true;
    if (result.outcome == answer::kind::refused && (result.code == no_change_code_ || is_about_types(result))) {
        fail_check("it refused an update (code " + std::to_string(result.code) + ')');
        return false;
    }
    if (const auto callback = on_failure_)
        callback(result, no_change_code_);
    end(failure_of(result, no_change_code_, effect::reads));
    return false;
}

void server_check::fail_check(const std::string& text)
{
    end(make_failure(errc::misconfigured_backend,
        "the server misinterprets colock's updates: " + text + "; is it MongoDB 5.0 or later?"));
}

void server_check::end(const failure_ptr& failure)
{
    on_failure_ = nullptr;
    if (const auto callback = std::exchange(on_end_, nullptr))
        callback(failure);
}

} // namespace colock::inline v0::mongo::detail
