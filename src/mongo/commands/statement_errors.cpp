// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/statement_errors.hpp"

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

namespace {

/// Index for an error that names no statement.
constexpr auto no_statement = std::numeric_limits<std::size_t>::max();

std::int64_t number_in(const document& reply, const char* name)
{
    bson_iter_t found;
    return bson_iter_init_find(&found, reply.get(), name) ? bson_iter_as_int64(&found) : 0;
}

} // namespace

statement_errors::statement_errors(const document& reply) : done_count_(number_in(reply, "n"))
{
    bson_iter_t all;
    bson_iter_t each;
    if (!bson_iter_init_find(&all, reply.get(), "writeErrors") || !bson_iter_recurse(&all, &each))
        return;
    while (bson_iter_next(&each)) {
        bson_iter_t inside;
        std::size_t index = no_statement;
        std::uint32_t code = 0;
        std::string text;
        if (!bson_iter_recurse(&each, &inside))
            continue;
        while (bson_iter_next(&inside)) {
            const std::string_view name = bson_iter_key(&inside);
            if (name == "index")
                index = static_cast<std::size_t>(bson_iter_as_int64(&inside));
            else if (name == "code")
                code = static_cast<std::uint32_t>(bson_iter_as_int64(&inside));
            else if (name == "errmsg" && BSON_ITER_HOLDS_UTF8(&inside))
                text = bson_iter_utf8(&inside, nullptr);
        }
        auto result = judge_failure(MONGOC_ERROR_SERVER, code, std::move(text));
        // The error of a duplicate key names the index in which the key was found.
        if (bson_iter_recurse(&each, &inside) && bson_iter_find(&inside, "keyPattern"))
            bson_append_iter(result.reply.get(), nullptr, -1, &inside);
        failed_.insert_or_assign(index, std::move(result));
    }
}

const answer* statement_errors::find(std::size_t statement) const noexcept
{
    const auto found = failed_.find(statement);
    return found == failed_.end() ? nullptr : &found->second;
}

bool statement_errors::accounts_for(std::size_t count) const noexcept
{
    return (failed_.empty() || failed_.rbegin()->first < count) &&
           done_count_ + static_cast<std::int64_t>(failed_.size()) == static_cast<std::int64_t>(count);
}

} // namespace colock::inline v0::mongo::detail
