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

void answer::set_cause(const boost::system::error_code& error, bool was_sent)
{
    if (was_sent && outcome == kind::unsent)
        outcome = kind::unknown;
    else if (!was_sent && outcome == kind::unknown && code == 0)
        outcome = kind::unsent;
    if (code != 0 || !error)
        return;
    cause = error;
    text = error.message();
}

answer judge_failure(std::uint32_t domain, std::uint32_t code, std::string text)
{
    answer result;
    result.text = std::move(text);
    if (domain == MONGOC_ERROR_WRITE_CONCERN) {
        result.outcome = answer::kind::unknown;
        result.code = static_cast<std::int32_t>(code);
        return result;
    }
    if (domain == MONGOC_ERROR_SERVER) {
        result.code = static_cast<std::int32_t>(code);
        result.ends_connection = std::ranges::find(state_change_codes, code) != state_change_codes.end();
        // An interrupted command may have been carried out before the interruption.
        result.outcome = result.ends_connection ? answer::kind::unknown : answer::kind::refused;
        return result;
    }
    result.ends_connection = true;
    result.is_too_old = domain == MONGOC_ERROR_PROTOCOL && code == MONGOC_ERROR_PROTOCOL_BAD_WIRE_VERSION &&
                        result.text.find("requires at least") != std::string::npos;
    // After the driver has selected a server, it does not report how much it has sent.
    result.outcome =
        domain == MONGOC_ERROR_STREAM || domain == MONGOC_ERROR_PROTOCOL ? answer::kind::unknown : answer::kind::unsent;
    return result;
}

answer make_not_primary(std::string state)
{
    return {.outcome = answer::kind::unsent, .text = std::move(state), .ends_connection = true};
}

answer ask(mongoc_client_t& driver, const std::string& database, const document& request) noexcept
{
    document reply;
    bson_error_t error{};
    answer result;
    const bool has_succeeded =
        mongoc_client_command_simple(&driver, database.c_str(), request.get(), nullptr, reply.overwrite(), &error);
    // The driver takes a reply that contains neither a success nor an error for a success.
    if (has_succeeded && is_success(reply)) {
        result.outcome = answer::kind::done;
    } else {
        try {
            result = has_succeeded || error.domain == MONGOC_ERROR_SERVER
                         ? judge_failure(MONGOC_ERROR_SERVER, code_in(reply), error.message)
                         : judge_failure(error.domain, error.code, error.message);
        } catch (const std::exception&) {
            result.outcome = answer::kind::unknown;
            result.ends_connection = true;
        }
    }
    result.reply = std::move(reply);
    return result;
}

} // namespace colock::inline v0::mongo::detail
