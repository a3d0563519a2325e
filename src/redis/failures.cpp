// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/failures.hpp"

#include <boost/asio/error.hpp>
#include <boost/redis/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace colock::inline v0::redis::detail {

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

bool is_redirection(const reply& answer) noexcept
{
    const auto word = answer.is_error() ? error_word(answer.text) : std::string_view();
    return word == "MOVED" || word == "ASK";
}

namespace {

/// Tells whether a command of a script was refused for lack of rights. Such errors lack the NOPERM prefix. Servers
/// before 7.2 use the first form, later servers use the second.
bool is_denied_in_script(std::string_view error) noexcept
{
    const auto inner = unwrapped(error);
    return inner.find("The user executing the script can't") != std::string_view::npos ||
           inner.starts_with("ERR ACL failure in script");
}

bool contains(std::string_view text, std::string_view part) noexcept
{
    return text.find(part) != std::string_view::npos;
}

} // namespace

bool is_command_refused(std::string_view error) noexcept
{
    const auto inner = unwrapped(error);
    // Error for a command of a script, before Redis 7.2.
    if (contains(inner, "can't run this command"))
        return true;
    // Error for any other command, and for a command of a script since Redis 7.2.
    if (inner.starts_with("NOPERM") || is_denied_in_script(error))
        return contains(inner, "permissions to run the");
    return is_command_unknown(error);
}

bool is_command_unknown(std::string_view error) noexcept
{
    const auto inner = unwrapped(error);
    // The first form for a command of a script, the second for any other command.
    return contains(inner, "command called from") || inner.starts_with("ERR unknown command");
}

namespace {

/// Errors of a temporary state of the server or of its replication group. The same request may succeed later.
constexpr std::array<std::pair<std::string_view, const char*>, 9> temporary_errors{{
    {"READONLY", "the server is a replica"},
    {"LOADING", "the server is loading its data"},
    {"BUSY", "the server is busy with a script"},
    {"MASTERDOWN", "the server has lost its master"},
    {"CLUSTERDOWN", "the cluster is down"},
    {"TRYAGAIN", "the server moves its keys to another"},
    {"NOREPLICAS", "the server has too few replicas in reach"},
    {"ERR max number of clients", "the server has too many clients"},
    {"ERR max clients", "the server has too many clients"},
}};

class server_category final : public boost::system::error_category
{
public:
    [[nodiscard]] const char* name() const noexcept override { return "redis server"; }
    [[nodiscard]] std::string message(int value) const override
    {
        const auto index = static_cast<std::size_t>(value) - 1;
        return index < temporary_errors.size() ? temporary_errors[index].second : "unknown error of a Redis server";
    }
};

/// `prefix` is the first word of an error, or several words that the error begins with.
bool is_named(std::string_view error, std::string_view prefix) noexcept
{
    return contains(prefix, " ") ? unwrapped(error).starts_with(prefix) : error_word(error) == prefix;
}

} // namespace

error_code server_code(std::string_view error) noexcept
{
    static const server_category category;
    const auto found =
        std::ranges::find_if(temporary_errors, [&](const auto& each) { return is_named(error, each.first); });
    return found == temporary_errors.end()
               ? error_code()
               : error_code(static_cast<int>(found - temporary_errors.begin()) + 1, category);
}

errc refusal_code(std::string_view error) noexcept
{
    constexpr std::array denied{"NOAUTH", "WRONGPASS", "NOPERM"};
    if (std::ranges::find(denied, error_word(error)) != denied.end() || is_denied_in_script(error))
        return errc::access_denied;
    return server_code(error) ? errc::unavailable : errc::misconfigured_backend;
}

namespace {

constexpr std::string_view fence_counter_repair =
    "the fence counter leaves no room for more: delete its key ({colock}#fence, or that of your prefix), and it starts "
    "again at the server's clock; fences are lower then, so resources must forget higher ones";

constexpr std::string_view unknown_command =
    "use Redis 6.2 or later, rename no command, and grant the user the rights that the documentation lists";

std::string_view remedy(std::string_view error) noexcept
{
    constexpr std::array<std::pair<std::string_view, std::string_view>, 14> remedies{{
        {"ERR increment or decrement would overflow", fence_counter_repair},
        {"ERR value is not an integer or out of range", fence_counter_repair},
        {"ERR unknown command", unknown_command},
        {"ERR Unknown", unknown_command},
        {"Unknown Redis command", unknown_command},
        {"OOM", "the server is out of memory: raise maxmemory or free some"},
        {"WRONGTYPE", "another program uses this key, or one of colock's own keys: use another prefix"},
        {"MISCONF", "the server cannot save its data and refuses writes: repair its disk"},
        {"CROSSSLOT", "in a cluster, give a prefix with braces, or write redis+cluster://"},
        {"MOVED", "another master serves the slot of the keys: write redis+cluster://"},
        {"NOPERM", "grant the user the rights that the documentation lists"},
        {"NOAUTH", "give a password"},
        {"WRONGPASS", "correct the user or the password"},
        {"READONLY", "the server is a replica: name the master, or use Sentinel"},
    }};
    const auto message = is_denied_in_script(error) ? "NOPERM" : error;
    const auto found = std::ranges::find_if(remedies, [&](const auto& each) { return is_named(message, each.first); });
    return found == remedies.end() ? std::string_view() : found->second;
}

} // namespace

failure_ptr refusal(std::string_view error)
{
    auto message = unwrapped(error);
    // The server repeats the arguments of a command that it does not know, and they may contain tokens and passwords.
    message = message.substr(0, message.find(", with args beginning with"));
    std::string detail = "the server answered: ";
    detail += message.substr(0, 200);
    if (const auto hint = remedy(error); !hint.empty())
        (detail += "; ") += hint;
    return make_failure(refusal_code(error), std::move(detail), server_code(error));
}

namespace {

/// Tells whether the driver could not read what the peer has sent.
bool is_parse_error(const error_code& error) noexcept
{
    using driver_error = boost::redis::error;
    constexpr std::array errors{driver_error::invalid_data_type, driver_error::not_a_number,
        driver_error::exceeeds_max_nested_depth, driver_error::unexpected_bool_value, driver_error::empty_field};
    return std::ranges::any_of(errors, [&](driver_error each) { return error == each; });
}

} // namespace

failure_ptr lost_connection(const std::string& address, const error_code& error)
{
    auto detail = error.message();
    if (error == asio::error::timed_out)
        detail = "the server does not answer";
    else if (error == asio::error::connection_reset)
        detail = "the server closed the connection";
    else if (error == boost::redis::error::ssl_handshake_timeout)
        detail = "no answer in the TLS handshake; does the server speak TLS? Without TLS, write redis://";
    else if (is_parse_error(error))
        detail = "the peer is not a Redis server: " + detail;
    return make_failure(errc::unavailable, address + ": " + detail, error);
}

failure_ptr refusal(const reply& answer)
{
    if (answer.is_error())
        return refusal(answer.text);
    return make_failure(errc::misconfigured_backend,
        "the server's answer has an unexpected shape; is it Redis 6.2 or later, without a rewriting proxy?");
}

} // namespace colock::inline v0::redis::detail
