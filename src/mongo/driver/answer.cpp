// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/answer.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

namespace {

/// The server is not the primary, or will soon not be: InterruptedAtShutdown, InterruptedDueToReplStateChange,
/// NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary, PrimarySteppedDown, ShutdownInProgress,
/// LegacyNotPrimary.
constexpr std::array<std::uint32_t, 8> state_change_codes{11600, 11602, 10107, 13435, 13436, 189, 91, 10058};

bool is_success(const document& reply) noexcept
{
    bson_iter_t found;
    return bson_iter_init_find(&found, reply.get(), "ok") && bson_iter_as_bool(&found);
}

/// Returns the server's code. The driver reports a code of its own for an error without a code, and replaces others.
std::uint32_t code_in(const document& reply) noexcept
{
    bson_iter_t found;
    const bool has_code = bson_iter_init_find(&found, reply.get(), "code");
    return has_code ? static_cast<std::uint32_t>(bson_iter_as_int64(&found)) : 0;
}

} // namespace

void answer::set_cause(const boost::system::error_code& failure, bool was_sent)
{
    if (was_sent && what == kind::unsent)
        what = kind::unknown;
    else if (!was_sent && what == kind::unknown && code == 0)
        what = kind::unsent;
    if (code != 0 || !failure)
        return;
    cause = failure;
    why = failure.message();
}

answer judge_failure(std::uint32_t domain, std::uint32_t code, std::string why)
{
    answer judged;
    judged.why = std::move(why);
    if (domain == MONGOC_ERROR_WRITE_CONCERN) {
        judged.what = answer::kind::unknown;
        judged.code = static_cast<std::int32_t>(code);
        return judged;
    }
    if (domain == MONGOC_ERROR_SERVER) {
        judged.code = static_cast<std::int32_t>(code);
        judged.ends_connection = std::ranges::find(state_change_codes, code) != state_change_codes.end();
        // An interrupted command may have been carried out before the interruption.
        judged.what = judged.ends_connection ? answer::kind::unknown : answer::kind::refused;
        return judged;
    }
    judged.ends_connection = true;
    judged.is_too_old = domain == MONGOC_ERROR_PROTOCOL && code == MONGOC_ERROR_PROTOCOL_BAD_WIRE_VERSION &&
                        judged.why.find("requires at least") != std::string::npos;
    // After the driver has selected a server, it does not report how much it has sent.
    judged.what =
        domain == MONGOC_ERROR_STREAM || domain == MONGOC_ERROR_PROTOCOL ? answer::kind::unknown : answer::kind::unsent;
    return judged;
}

answer make_not_primary(std::string why)
{
    return {.what = answer::kind::unsent, .why = std::move(why), .ends_connection = true};
}

answer ask(mongoc_client_t& driver, const std::string& database, const document& asked) noexcept
{
    document reply;
    bson_error_t error{};
    answer got;
    const bool has_succeeded =
        mongoc_client_command_simple(&driver, database.c_str(), asked.get(), nullptr, reply.overwrite(), &error);
    // The driver takes a reply that contains neither a success nor an error for a success.
    if (has_succeeded && is_success(reply)) {
        got.what = answer::kind::done;
    } else {
        try {
            got = has_succeeded || error.domain == MONGOC_ERROR_SERVER
                      ? judge_failure(MONGOC_ERROR_SERVER, code_in(reply), error.message)
                      : judge_failure(error.domain, error.code, error.message);
        } catch (const std::exception&) {
            got.what = answer::kind::unknown;
            got.ends_connection = true;
        }
    }
    got.reply = std::move(reply);
    return got;
}

} // namespace colock::inline v0::mongo::detail
