// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/admin.hpp"

#include "command/backend.hpp"
#include "command/exit_code.hpp"
#include "command/lock_table.hpp"
#include "util/text_escaping.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace command {

namespace {

using program_options::bool_switch;
using program_options::value;

void refuse_words(const invocation& call, std::size_t max_count)
{
    if (call.words.size() > max_count)
        throw usage_error("'" + call.words[max_count] + "' is one word too many");
}

/// Writes everything to stdout. If its reader has gone, ends the process as other commands end: by SIGPIPE.
int flush_output()
{
    if (std::cout.flush())
        return success;
    std::signal(SIGPIPE, SIG_DFL);
    static_cast<void>(std::raise(SIGPIPE));
    return failure;
}

int print(const std::vector<colock::lock_status>& locks, const invocation& call)
{
    if (call.flag("json"))
        print_json(std::cout, locks);
    else
        print_table(std::cout, locks, ::isatty(STDOUT_FILENO) == 1);
    return flush_output();
}

void add_json_option(program_options::options_description& options)
{
    options.add_options()("json", bool_switch(), "write one JSON object per lock and line");
}

/// Asks on the terminal whether the holders shall be removed.
bool confirm(const std::string& key, const std::vector<colock::lock_status>& holders)
{
    print_table(std::cerr, holders, true);
    std::cerr << "Remove the lock " << colock::detail::quoted(key) << " from its holders? [y/N] ";
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes";
}

} // namespace

void add_ls_options(program_options::options_description& options)
{
    add_json_option(options);
}

void add_break_options(program_options::options_description& options)
{
    options.add_options()("yes,y", bool_switch(), "do not ask");
    add_json_option(options);
}

void add_purge_options(program_options::options_description& options)
{
    options.add_options()("limit", value<std::int64_t>()->value_name("N"), "remove at most N locks; default: all");
    add_json_option(options);
}

int ls(const invocation& call)
{
    refuse_words(call, 1);
    colock::filter filter;
    if (!call.words.empty())
        filter.key_prefix = call.words.front();
    return run_with_locker(call, [&](colock::locker locker) -> asio::awaitable<int> {
        auto locks = co_await locker.list(filter);
        sort_by_key(locks);
        co_return print(locks, call);
    });
}

int break_key(const invocation& call)
{
    refuse_words(call, 1);
    if (call.words.empty())
        throw usage_error("no key is given");
    const std::string key = call.words.front();
    if (!call.flag("yes") && ::isatty(STDIN_FILENO) != 1)
        throw usage_error("break removes the lock from a running holder; confirm it with --yes");
    return run_with_locker(call, [&](colock::locker locker) -> asio::awaitable<int> {
        if (!call.flag("yes")) {
            const auto holders = co_await locker.list({.key = key});
            if (holders.empty()) {
                print_line("nobody holds " + colock::detail::quoted(key));
                co_return success;
            }
            if (!confirm(key, holders))
                co_return failure;
        }
        const auto removed = co_await locker.break_lock(key);
        if (removed.empty() && !call.flag("quiet"))
            print_line("nobody holds " + colock::detail::quoted(key));
        co_return print(removed, call);
    });
}

int purge(const invocation& call)
{
    refuse_words(call, 0);
    const auto limit = static_cast<std::size_t>(call.number("limit", 1).value_or(0)); // 0: no limit
    return run_with_locker(call,
        [&](colock::locker locker) -> asio::awaitable<int> { co_return print(co_await locker.purge(limit), call); });
}

} // namespace command
