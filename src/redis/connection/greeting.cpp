// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/greeting.hpp"

#include "redis/connection/server_settings.hpp"
#include "redis/failures.hpp"

#include <cstddef>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Returns a field of the reply to HELLO, which is a flat list of names and values.
const reply& hello_field(const reply& hello, std::string_view name)
{
    for (std::size_t i = 0; i + 1 < hello.items.size(); i += 2) {
        if (hello.items[i].text == name)
            return hello.items[i + 1];
    }
    return hello.at(hello.items.size());
}

/// Returns why locks cannot be stored on this server, or null if they can.
failure_ptr check_greeting(const location& location, const reply_list& replies)
{
    const auto& hello = replies.front();
    if (!hello.is(reply::kind::array))
        return refusal(hello);
    if (location.database != 0 && replies[1].is_error())
        return refusal(replies[1]);
    // A replica in a cluster refers each request for a lock to its master.
    if (const auto& role = hello_field(hello, "role").text; role != "master" && !role.empty() && !location.cluster)
        return make_replica_failure();
    const auto& info = replies.back();
    if (info.is_error())
        return refusal_code(info.text) == errc::unavailable ? refusal(info) : nullptr;
    if (is_too_old(info.text))
        return make_failure(errc::misconfigured_backend, "the server is older than Redis 6.2; update it");
    return nullptr;
}

std::string_view user_or_default(const std::string& user) noexcept
{
    return user.empty() ? std::string_view("default") : user;
}

} // namespace

void push_hello(
    boost::redis::request& request, const std::string& user, const std::string& password, std::string_view name)
{
    std::vector<std::string_view> words{"3"};
    if (!password.empty())
        words.insert(words.end(), {"AUTH", user_or_default(user), password});
    if (!name.empty())
        words.insert(words.end(), {"SETNAME", name});
    request.push_range("HELLO", words);
}

void push_greeting(boost::redis::request& request, const std::string& user, const std::string& password, int database)
{
    push_hello(request, user, password, client_name);
    if (database != 0)
        request.push("SELECT", database);
    request.push("INFO");
}

void push_auth(boost::redis::request& request, const std::string& user, const std::string& password)
{
    request.push("AUTH", user_or_default(user), password);
}

greeting_result read_greeting(const location& location, const reply_list& replies)
{
    greeting_result result;
    result.failure = check_greeting(location, replies);
    if (result.failure)
        return result;
    const auto& info = replies.back();
    result.identity.id = hello_field(replies.front(), "id").number;
    if (!info.is_error())
        result.identity.process = info_field(info.text, "run_id");
    result.warnings = settings_warnings(info);
    result.in_cluster = hello_field(replies.front(), "mode").text == "cluster";
    if (result.in_cluster && !location.cluster)
        result.warnings.emplace_back(
            "the server is a node of a Redis Cluster: without redis+cluster://, colock follows no redirection, so this "
            "node has to serve the slot"
            " of every key, and a failover is followed only if the address leads to the new master");
    result.may_have_replicas = info.is_error() || has_replicas(info);
    return result;
}

failure_ptr make_replica_failure()
{
    return make_failure(
        errc::unavailable, "the server is a replica: name the master, or use Sentinel", server_code("READONLY"));
}

} // namespace colock::inline v0::redis::detail
