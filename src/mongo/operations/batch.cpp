// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/batch.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/commands/statement_errors.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/operations/batchable_operation.hpp"
#include "mongo/settings.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

namespace {

constexpr std::size_t max_statements = 64;

} // namespace

std::size_t batch_count(std::size_t operations) noexcept
{
    if (operations <= 2)
        return operations;
    return operations <= max_statements ? 1 : 2;
}

std::size_t batch_size(std::size_t operations) noexcept
{
    const auto commands = std::max<std::size_t>(batch_count(operations), 1);
    return std::clamp<std::size_t>((operations + commands - 1) / commands, 1, max_statements);
}

batch::batch(const settings& config, std::span<const member_ptr> members, std::int32_t no_change_code)
    : database_(config.database), no_change_code_(no_change_code)
{
    members_.reserve(members.size());
    // Releases come first, because other operations of the batch may acquire the released locks.
    for (const bool is_release : {true, false}) {
        for (const auto& each : members) {
            if (each->is_release() == is_release)
                members_.push_back({each, each->needs_document()});
        }
    }
    update_ = make_update(config);
    find_ = make_find(config);
}

/// Makes the update. A statement that several operations share is at the position of the first of these operations.
document batch::make_update(const settings& config)
{
    std::vector<std::vector<batchable_operation*>> statements;
    std::map<std::pair<std::string_view, std::string>, std::size_t> shared;
    for (auto& each : members_) {
        each.statement = statements.size();
        if (auto kind = each.operation->statement_kind(); !kind.empty())
            each.statement =
                shared.try_emplace({each.operation->key(), std::move(kind)}, statements.size()).first->second;
        if (each.statement == statements.size())
            statements.emplace_back();
        statements[each.statement].push_back(each.operation.get());
    }
    statement_count_ = statements.size();
    batch_update all(config);
    for (const auto& each : statements) {
        all.add([&](bson_t& to) {
            if (each.size() == 1)
                each.front()->write(to);
            else
                each.front()->write_for(each, to);
        });
    }
    return all.take();
}

document batch::make_find(const settings& config) const
{
    document result;
    std::set<std::string_view> keys;
    for (const auto& each : members_) {
        if (each.needs_document)
            keys.insert(each.operation->key());
    }
    if (keys.empty())
        return result;
    bson_append_utf8(result.get(), "find", -1, config.collection.data(), static_cast<int>(config.collection.size()));
    bson_append_document(result.get(), "filter", -1, keys_query(std::vector(keys.begin(), keys.end())).get());
    commands::get().find_options.append_to(*result.get(), {{"n", static_cast<std::int64_t>(keys.size())}});
    return result;
}

batch::~batch() = default;

bool batch::leave(const batchable_operation& which) noexcept
{
    bool is_empty = true;
    for (auto& each : members_) {
        if (each.operation == &which)
            each.operation.reset();
        is_empty = is_empty && !each.operation;
    }
    return is_empty;
}

void batch::perform(mongoc_client_t& driver) noexcept
{
    update_result_ = ask(driver, database_, update_);
    if (update_result_.outcome == answer::kind::done && !bson_empty(find_.get()))
        find_result_ = ask(driver, database_, find_);
}

void batch::set_cause(const error_code& cause, bool was_sent)
{
    (update_result_.outcome == answer::kind::done ? find_result_ : update_result_).set_cause(cause, was_sent);
}

void batch::on_end()
{
    is_over_ = true;
    const statement_errors errors(update_result_.reply);
    if (update_result_.outcome == answer::kind::done && !errors.accounts_for(statement_count_)) {
        update_result_.outcome = answer::kind::refused;
        update_result_.text = "the reply does not contain the results of all statements";
    }
    update_result_.is_of_batch = members_.size() > 1;
    const bool is_confirmed = update_result_.outcome == answer::kind::done && !lacks_confirmation(update_result_);
    std::map<std::string, lock_view, std::less<>> views;
    for_each_document(
        find_result_.reply, [&](const bson_iter_t& each) { views.insert_or_assign(key_of(each), lock_view(each)); });
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto member = std::exchange(members_[i].operation, nullptr);
        if (!member)
            continue;
        const auto* const error = errors.find(members_[i].statement);
        if (!is_confirmed)
            member->on_error(update_result_);
        else if (error && error->code != no_change_code_)
            member->on_error(*error);
        else if (error)
            member->on_refused();
        else if (!members_[i].needs_document)
            member->on_done();
        else if (const auto found = views.find(member->key()); found != views.end())
            member->on_document(found->second);
        else
            member->on_document_unknown(find_result_);
    }
}

} // namespace colock::inline v0::mongo::detail
