// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_check.hpp"

#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/templates/lock_view.hpp"
#include "mongo/templates/write_concern.hpp"

#include <colock/token.hpp>

#include <array>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Ttl of the locks that the check acquires, in milliseconds.
constexpr std::int64_t ttl = 60'000;
/// Maximum number of attempts of an update that conflicts with updates of other clients.
constexpr int max_attempts = 5;
constexpr auto wrong_outcome = "a statement that must fail succeeded, or a statement that must succeed failed";

const command_template& removal()
{
    static const command_template text(
        R"({"delete":"?c","deletes":[{"q":{"_id":"?k"},"limit":1}],)" + templates::write_concern + "}");
    return text;
}

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

bool holds(const lock_view& seen, const std::string& who, std::int64_t request)
{
    const auto* const held = seen.find(who);
    return held && held->request == request && held->fence > 0;
}

} // namespace

struct server_check::step
{
    using token_ref = const std::string&;

    const char* what;
    const command_template& (*get_template)();
    /// Whether the request contains the first of the two tokens, not the second.
    bool uses_first_token;
    /// Number of the request.
    std::int64_t number;
    bool (*is_right)(const lock_view&, token_ref first, token_ref second);
};

const std::array<server_check::step, 15> server_check::steps{{
    {"a document of another program was taken for a lock",
        []() -> const command_template& { return commands::get().refuse; }, true, 1,
        [](const lock_view& seen, step::token_ref, step::token_ref) { return seen.is_foreign(); }},
    // The reply shows the document after both commands.
    {"a document of another program was changed",
        []() -> const command_template& { return commands::get().exclusive_queues.with_ttl; }, true, 1,
        [](const lock_view& seen, step::token_ref, step::token_ref) { return seen.is_foreign(); }},
    {"a document was not deleted", &removal, true, 1,
        [](const lock_view&, step::token_ref, step::token_ref) { return true; }},
    {"a free lock was not granted",
        []() -> const command_template& { return commands::get().first_exclusive_queues.with_ttl; }, true, 1,
        [](const lock_view& seen, step::token_ref first, step::token_ref) { return holds(seen, first, 1); }},
    {"a lock that is held was granted to another",
        []() -> const command_template& { return commands::get().first_exclusive_queues.with_ttl; }, false, 1,
        [](const lock_view& seen, step::token_ref first, step::token_ref second) {
            return holds(seen, first, 1) && !seen.find(second);
        }},
    {"an exclusive lock was shared", []() -> const command_template& { return commands::get().shared_once.with_ttl; },
        false, 1,
        [](const lock_view& seen, step::token_ref first, step::token_ref second) {
            return holds(seen, first, 1) && !seen.find(second);
        }},
    {"a lock was not extended", []() -> const command_template& { return commands::get().extend_exclusive.with_ttl; },
        true, 2, [](const lock_view& seen, step::token_ref first, step::token_ref) { return holds(seen, first, 2); }},
    {"a lock was not released", []() -> const command_template& { return commands::get().release_exclusive; }, true, 3,
        [](const lock_view& seen, step::token_ref first, step::token_ref) {
            return seen.exists() && !seen.find(first);
        }},
    {"a lock was released twice", []() -> const command_template& { return commands::get().release_exclusive; }, true,
        3, [](const lock_view& seen, step::token_ref, step::token_ref) { return !seen.exists(); }},
    {"a lock was not shared", []() -> const command_template& { return commands::get().shared_once.with_ttl; }, true, 1,
        [](const lock_view& seen, step::token_ref first, step::token_ref) { return holds(seen, first, 1); }},
    {"a semaphore has more holders than it may",
        []() -> const command_template& { return commands::get().shared_once.with_ttl; }, false, 1,
        [](const lock_view& seen, step::token_ref first, step::token_ref second) {
            return holds(seen, first, 1) && !seen.find(second);
        }},
    {"a shared lock was granted to a writer",
        []() -> const command_template& { return commands::get().exclusive_queues.with_ttl; }, false, 1,
        [](const lock_view& seen, step::token_ref first, step::token_ref second) {
            return holds(seen, first, 1) && !seen.find(second) && seen.writer() == second;
        }},
    {"a shared lock was not released", []() -> const command_template& { return commands::get().release_shared; }, true,
        2,
        [](const lock_view& seen, step::token_ref first, step::token_ref) {
            return seen.exists() && !seen.find(first);
        }},
    {"what a writer has left was not taken back", []() -> const command_template& { return commands::get().refuse; },
        false, 2,
        [](const lock_view& seen, step::token_ref, step::token_ref second) { return seen.writer() == second; }},
    {"a token that was refused was granted a lock",
        []() -> const command_template& { return commands::get().exclusive_once.with_ttl; }, false, 3,
        [](const lock_view& seen, step::token_ref, step::token_ref second) {
            return seen.exists() && !seen.find(second);
        }},
}};

server_check::server_check(
    const settings& config, std::shared_ptr<connection_pool> on, handler on_end, failure_handler on_failure)
    : config_(config), pool_(std::move(on)), on_end_(std::move(on_end)), on_failure_(std::move(on_failure)),
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

void server_check::ask(
    const command_template& which, const std::string& who, std::int64_t number, callback_command::handler then)
{
    const auto now = clock_.latest(lease_clock::now());
    const auto next = std::make_shared<callback_command>(config_.database,
        which.filled({{"c", std::string_view(config_.collection)}, {"k", &id_}, {"t", std::string_view(who)},
            {"u", std::string_view(second_)}, {"x", ttl}, {"l", now + ttl}, {"e", number}, {"f", now}, {"o", &owner_},
            {"n", std::int64_t{1}}, {"m", config_.operation_timeout.count()}, {"b", now + ttl},
            {"v", std::string_view(first_)}}),
        std::move(then));
    pending_ = next;
    pool_->ask(next, lease_clock::now() + config_.operation_timeout);
}

void server_check::check_collection()
{
    static const command_template command(R"({"listCollections":1,"filter":{"name":"?c"}})");
    check_listing(command, &reason_in_collections, &server_check::check_indexes);
}

void server_check::check_indexes()
{
    static const command_template command(R"({"listIndexes":"?c"})");
    check_listing(command, &reason_in_indexes, &server_check::check_clock);
}

void server_check::check_listing(const command_template& command, finder find_reason, void (server_check::*then)())
{
    ask(command, first_, 0, [self = shared_from_this(), find_reason, then](const answer& got) {
        const bool is_done = judge(got) == verdict::done;
        // A refusal means that the user may not list them, or that there are none yet.
        if (!is_done && failure_of(got, changes_nothing, effect::reads)->code == errc::unavailable &&
            !self->require_done(got))
            return;
        if (const auto reason = find_reason(got.reply); is_done && !reason.empty())
            self->end(unsuitable_collection(reason));
        else
            (self.get()->*then)();
    });
}

void server_check::read_clock(void (server_check::*then)())
{
    ask(commands::get().clock, first_, 0, [self = shared_from_this(), then](const answer& got) {
        const auto time = read_time(got.reply);
        // Some servers answer inserts that race each other without a document.
        const bool is_conflict =
            is_raced_insert(got) || judge(got) == verdict::conflict || (got.what == answer::kind::done && !time);
        if (is_conflict && ++self->clock_conflicts_ < max_attempts) {
            self->read_clock(then);
            return;
        }
        if (!self->require_done(got))
            return;
        if (!time) {
            self->fail_check("it does not return its time");
            return;
        }
        self->clock_.update(*time, got.asked, lease_clock::now());
        (self.get()->*then)();
    });
}

bool server_check::read_code(const statement_errors& errors)
{
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

void server_check::learn_code()
{
    ask(commands::get().check_code, first_, 1, [self = shared_from_this()](const answer& got) {
        const statement_errors errors(got.reply);
        if (got.what != answer::kind::done || lacks_confirmation(got))
            static_cast<void>(self->require_done(got));
        else if (self->read_code(errors))
            self->read_clock(&server_check::succeed);
    });
}

void server_check::check_batch()
{
    ask(commands::get().check_batched, first_, 1, [self = shared_from_this()](const answer& got) {
        const statement_errors errors(got.reply);
        if (got.what != answer::kind::done || lacks_confirmation(got)) {
            static_cast<void>(self->require_done(got));
            return;
        }
        if (!self->read_code(errors))
            return;
        // Which statements of `check_batched` have to fail, in their order.
        constexpr std::array is_refused{true, false, true, true, false, true, false, true, true, true, false, false,
            true, false, true, false, true, false};
        bool is_right = errors.accounts_for(is_refused.size());
        for (std::size_t i = 0; i < is_refused.size(); ++i) {
            const auto* const error = errors.find(i);
            // A statement that has to succeed may fail with this code as well, if the server uses one code for all
            // errors.
            if (error && (!is_refused[i] || error->code != self->no_change_code_) && !self->require_done(*error))
                return;
            is_right = is_right && is_refused[i] == (error != nullptr);
        }
        if (is_right)
            self->take_step(0);
        else
            self->fail_check(wrong_outcome);
    });
}

void server_check::take_step(std::size_t which)
{
    const bool is_last = which == steps.size();
    ask(is_last ? removal() : steps[which].get_template(), !is_last && steps[which].uses_first_token ? first_ : second_,
        is_last ? 0 : steps[which].number,
        [self = shared_from_this(), which](const answer& got) { self->answered(which, got); });
}

bool server_check::require_done(const answer& got)
{
    if (judge(got) == verdict::done)
        return true;
    if (got.what == answer::kind::refused && (got.code == no_change_code_ || is_about_types(got))) {
        fail_check("it refused an update (code " + std::to_string(got.code) + ')');
        return false;
    }
    if (const auto callback = on_failure_)
        callback(got, no_change_code_);
    end(failure_of(got, no_change_code_, effect::reads));
    return false;
}

void server_check::answered(std::size_t which, const answer& got)
{
    const bool is_last = which == steps.size();
    if (!require_done(got))
        return;
    if (is_last)
        succeed();
    else if (steps[which].is_right(lock_view::of_answer(got.reply), first_, second_))
        take_step(which + 1);
    else
        fail_check(steps[which].what);
}

void server_check::fail_check(const std::string& what)
{
    end(make_failure(errc::misconfigured_backend,
        "the server misinterprets colock's updates: " + what + "; is it MongoDB 5.0 or later?"));
}

void server_check::end(const failure_ptr& why)
{
    on_failure_ = nullptr;
    if (const auto callback = std::exchange(on_end_, nullptr))
        callback(why);
}

} // namespace colock::inline v0::mongo::detail
