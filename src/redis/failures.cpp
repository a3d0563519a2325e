// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/failures.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace colock::redis::detail {

std::string_view unwrapped(std::string_view error) noexcept
{
    // Redis 6.2: "ERR Error running script (call to f_...): @user_script:10: @user_script: 10: -READONLY You can't ..."
    constexpr std::string_view mark = "@user_script: ";
    const auto found = error.rfind(mark);
    if (found == std::string_view::npos)
        return error;
    const auto end = error.find(": ", found + mark.size());
    if (end == std::string_view::npos)
        return error;
    auto inner = error.substr(end + 2);
    if (inner.starts_with('-'))
        inner.remove_prefix(1);
    return inner.empty() ? error : inner;
}

std::string_view error_word(std::string_view error) noexcept
{
    const auto inner = unwrapped(error);
    return inner.substr(0, inner.find(' '));
}

bool is_readonly(std::string_view error) noexcept
{
    return error_word(error) == "READONLY";
}

bool is_noscript(const reply& answer) noexcept
{
    return answer.is_error() && error_word(answer.text) == "NOSCRIPT";
}

namespace {

/// What servers say, without a word of its own, of a right that a script's command lacks: before 7.2, and since.
bool is_denied_in_script(std::string_view error) noexcept
{
    const auto inner = unwrapped(error);
    return inner.find("The user executing the script can't") != std::string_view::npos ||
           inner.starts_with("ERR ACL failure in script");
}

} // namespace

errc refusal_code(std::string_view error) noexcept
{
    constexpr std::array denied{"NOAUTH", "WRONGPASS", "NOPERM"};
    // The server, or its place in a group, changes soon; the same request may then succeed.
    constexpr std::array passing{"READONLY", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"};
    const auto word = error_word(error);
    if (std::ranges::find(denied, word) != denied.end() || is_denied_in_script(error))
        return errc::access_denied;
    if (std::ranges::find(passing, word) != passing.end())
        return errc::unavailable;
    const auto inner = unwrapped(error);
    if (inner.starts_with("ERR max number of clients") || inner.starts_with("ERR max clients"))
        return errc::unavailable;
    return errc::misconfigured_backend;
}

namespace {

std::string_view remedy(std::string_view error) noexcept
{
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> remedies{{
        {"OOM", "the server is out of memory: raise maxmemory or free some"},
        {"WRONGTYPE", "another program uses this key, or one of colock's own keys: use another prefix"},
        {"MISCONF", "the server cannot save its data and refuses writes: repair its disk"},
        {"CROSSSLOT", "in a cluster, give a prefix with braces, so that all keys share a slot"},
        {"MOVED", "Redis Cluster is not supported: name a single master"},
        {"NOPERM", "grant the user the rights that the documentation lists"},
        {"NOAUTH", "give a password"},
        {"WRONGPASS", "correct the user or the password"},
        {"READONLY", "the server is a replica: name the master, or use Sentinel"},
    }};
    const auto word = is_denied_in_script(error) ? "NOPERM" : error_word(error);
    const auto found = std::ranges::find(remedies, word, &std::pair<std::string_view, std::string_view>::first);
    return found == remedies.end() ? std::string_view() : found->second;
}

} // namespace

failure_ptr refusal(std::string_view error)
{
    auto told = unwrapped(error);
    // The server repeats the arguments of a command that it does not know, and those hold tokens and passwords.
    told = told.substr(0, told.find(", with args beginning with"));
    std::string detail = "the server answered: ";
    detail += told.substr(0, 200);
    if (const auto hint = remedy(error); !hint.empty())
        (detail += "; ") += hint;
    return make_failure(refusal_code(error), std::move(detail));
}

failure_ptr refusal(const reply& answer)
{
    if (answer.is_error())
        return refusal(answer.text);
    return make_failure(errc::misconfigured_backend,
        "the server's answer has an unexpected shape; is it Redis 6.2 or later, without a rewriting proxy?");
}

} // namespace colock::redis::detail
