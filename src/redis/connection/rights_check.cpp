// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/rights_check.hpp"

#include "redis/failures.hpp"
#include "redis/scripts/scripts.hpp"

#include <cstdint>
#include <limits>

namespace colock::inline v0::redis::detail {

namespace {

failure_ptr commands_refused(const std::string& names, const std::string& error,
    const std::string& effect = ", without which locks cannot be renewed and released; ")
{
    return make_failure(errc::access_denied, "the server refuses " + names + effect + refusal(error)->detail);
}

} // namespace

void push_rights_check(boost::redis::request& request, const settings& config)
{
    const auto& check = scripts::get().rights;
    for (const auto form : {script::form::whole, script::form::digest}) {
        // A node refuses a script with a key of another node before it runs. Keys that the script does not declare are
        // refused when a command uses them, after the check of the right.
        if (config.plain())
            check.push(request, form, config.cluster() ? 0 : 1, config.probe_key);
        else
            check.push(request, form, config.cluster() ? 0 : 2, config.probe_key, config.fence_key(slot_number{0}));
    }
    request.push("CLIENT", "KILL", "ID", std::numeric_limits<std::int64_t>::max());
}

rights read_rights(const reply& by_text, const reply& by_digest, const reply& killed)
{
    if (by_text.is_error() && is_command_refused(by_text.text))
        return {.failure = commands_refused("EVAL", by_text.text)};
    if (!by_text.is(reply::kind::array))
        return {.failure = refusal(by_text)};
    if (by_digest.is_error() && is_command_refused(by_digest.text))
        return {.failure = commands_refused("EVALSHA", by_digest.text)};
    rights result;
    if (!killed.is(reply::kind::number))
        result.warnings.emplace_back(
            "CLIENT KILL is not allowed, so an interrupted acquire can only be settled by waiting for its ttl");
    std::string required_commands, optional_commands, error, optional_error;
    for (const auto& row : by_text.items) {
        const std::string& command = row.at(0).text;
        if (!is_command_refused(row.at(1).text))
            continue;
        if (command == "SPUBLISH" && is_command_unknown(row.at(1).text)) {
            result.has_sharded_channels = false;
            continue;
        }
        if (command == "PUBLISH" || command == "SPUBLISH") {
            result.warnings.push_back(
                command + " is refused, so a release wakes no waiter of another process: these notice it late");
            continue;
        }
        if (command == "PUBSUB") {
            result.warnings.emplace_back(
                "PUBSUB SHARDNUMSUB is refused, so each release sends a message, also if nobody waits");
            continue;
        }
        // Only shared locks and locks of groups use these commands, because they need sorted sets.
        const bool is_optional = command.starts_with('Z') || command == "PEXPIREAT";
        auto& names = is_optional ? optional_commands : required_commands;
        (names += names.empty() ? "" : ", ") += command;
        (is_optional ? optional_error : error) = row.at(1).text;
    }
    if (!required_commands.empty())
        result.failure = commands_refused(required_commands, error);
    if (!optional_commands.empty()) {
        result.sorted_sets_refused = commands_refused(
            optional_commands, optional_error, ", without which there are no shared locks and no locks of groups; ");
        result.warnings.push_back(optional_commands + " is refused, so shared locks and locks of groups are refused");
    }
    return result;
}

} // namespace colock::inline v0::redis::detail
