// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/run.hpp"

#include "command/acquire.hpp"
#include "command/backend.hpp"
#include "command/exit_code.hpp"
#include "command/process.hpp"
#include "command/signal_source.hpp"
#include "command/stop_plan.hpp"
#include "command/supervise.hpp"
#include "command/ticket_file.hpp"

#include <colock/election.hpp>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace command {

namespace {

using namespace std::chrono_literals;
using program_options::bool_switch;
using program_options::value;
using std::chrono::milliseconds;

std::string in_seconds(milliseconds span)
{
    return span % 1000 == 0ms ? std::to_string(span / 1s) + 's' : std::to_string(span.count()) + "ms";
}

/// Returns the shortest ttl for this grace. A lease is renewed after a third of its ttl. The child gets SIGTERM after
/// two thirds at the earliest, so that a renewal has at least a third of the ttl to succeed.
milliseconds needed_lease(milliseconds grace)
{
    return 3 * (grace + stop_plan::kill_margin);
}

void add_holder_options(program_options::options_description& options)
{
    options.add_options()                                                                               //
        ("owner", value<std::string>()->value_name("S"), "name of the holder; default: the process id") //
        ("comment", value<std::string>()->value_name("S"), "reason for the lock");
}

void add_acquire_options(program_options::options_description& options)
{
    options.add_options()                                                                                     //
        ("timeout,w", value<std::string>()->value_name("D"), "wait for at most this time; default: no limit") //
        ("no-wait,n", bool_switch(), "make one attempt; the same as --timeout 0")                             //
        ("shared,s", bool_switch(), "share the lock with other shared holders")                               //
        ("max-holders", value<std::int64_t>()->value_name("N"), "the same, with at most N holders")           //
        ("conflict-exit-code,E", value<std::int64_t>()->value_name("N")->default_value(busy),
            "exit code if the lock is busy");
    add_holder_options(options);
}

void add_child_options(program_options::options_description& options)
{
    options.add_options() //
        ("ttl", value<std::string>()->value_name("D")->default_value("30s"),
            "duration of the lease, which is renewed")                                                        //
        ("grace", value<std::string>()->value_name("D")->default_value("5s"), "time from SIGTERM to SIGKILL") //
        ("max-hold", value<std::string>()->value_name("D"), "end the command and the lock after this time")   //
        ("command,c", value<std::string>()->value_name("LINE"), "run this line by sh -c");
}

/// The options of a lease under which a child runs.
struct lease_options
{
    milliseconds ttl;
    milliseconds grace;
    std::optional<milliseconds> max_hold;
};

milliseconds ttl_of(const invocation& call)
{
    const milliseconds ttl = call.duration("ttl").value();
    if (ttl == 0ms)
        throw usage_error("--ttl 0: a lock without an end would stay locked after a crash; use a duration such as 30s");
    return ttl;
}

lease_options lease_of(const invocation& call)
{
    const lease_options lease{
        .ttl = ttl_of(call), .grace = call.duration("grace").value(), .max_hold = call.duration("max-hold")};
    if (needed_lease(lease.grace) > lease.ttl) {
        throw usage_error("--grace " + in_seconds(lease.grace) + " needs --ttl " +
                          in_seconds(needed_lease(lease.grace)) + " or more, which is 3 * (grace + 0.5 s); --ttl is " +
                          in_seconds(lease.ttl));
    }
    if (lease.max_hold && *lease.max_hold <= lease.grace + stop_plan::kill_margin) {
        throw usage_error("--max-hold " + in_seconds(*lease.max_hold) +
                          " leaves no time for the command: it has to be "
                          "more than grace + 0.5 s, which is " +
                          in_seconds(lease.grace + stop_plan::kill_margin));
    }
    return lease;
}

/// Checks a lease that a session of the backend limits, too. The session is renewed more often than a lease, so twice
/// the time that the child needs to end is enough.
/// \throws usage_error the lease is too short for the grace
void check_session(const backend& opened, std::span<const colock::lock> locks, const lease_options& lease)
{
    // Where the backend removes a lock after its ttl, no session limits the lease. A `max_hold` below the ttl limits
    // the lease on purpose.
    if (opened.adapter->traits().capabilities.expires || (lease.max_hold && *lease.max_hold < lease.ttl))
        return;
    const milliseconds needed = 2 * (lease.grace + stop_plan::kill_margin);
    for (const colock::lock& each : locks) {
        const auto granted = std::chrono::duration_cast<milliseconds>(each.valid_for());
        if (granted >= needed)
            continue;
        // Rounded down to a tenth of a second.
        const milliseconds largest = (granted / 2 - stop_plan::kill_margin) / 100ms * 100ms;
        throw usage_error("--grace " + in_seconds(lease.grace) + " needs a lease of " + in_seconds(needed) +
                          ", but the server's session timeout limits it to " + in_seconds(granted) +
                          (largest > 0ms ? "; use --grace " + in_seconds(largest) + " or less, or" : ";") +
                          " raise maxSessionTimeout of the servers");
    }
}

std::vector<std::string> keys_of(const invocation& call)
{
    std::vector<std::string> keys = call.words;
    if (keys.size() > 1)
        throw usage_error(
            "'" + keys[1] + "' is a second key; the command follows --, and run takes further keys as --key KEY");
    if (call.options.count("key") != 0) {
        const auto& others = call.options["key"].as<std::vector<std::string>>();
        keys.insert(keys.end(), others.begin(), others.end());
    }
    if (keys.empty())
        throw usage_error("no key is given");
    auto sorted = keys;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
        throw usage_error("the key '" + *twice + "' is given twice");
    return keys;
}

colock::acquire_options acquire_options_of(const invocation& call, milliseconds ttl)
{
    colock::acquire_options options{.ttl = ttl,
        .renewal = colock::renewal::automatic,
        .owner = call.text("owner"),
        .comment = call.text("comment")};
    const auto max_holders = call.number("max-holders", 1);
    if (max_holders) {
        options.max_holders = static_cast<std::size_t>(*max_holders);
        if (call.flag("shared"))
            throw usage_error("--max-holders excludes --shared, which has no limit; use one of them");
    }
    if (max_holders || call.flag("shared"))
        options.mode = colock::lock_mode::shared;
    const auto timeout = call.flag("no-wait") ? milliseconds(0) : call.duration("timeout");
    options.retry = !timeout          ? colock::retry_policy::forever()
                    : *timeout == 0ms ? colock::retry_policy::never()
                                      : colock::within(*timeout);
    return options;
}

/// The exit code for a busy lock.
int busy_code_of(const invocation& call)
{
    return static_cast<int>(call.number("conflict-exit-code", 0, 255).value());
}

/// Returns whether people read the progress on stderr.
bool shows_progress(const invocation& call)
{
    return ::isatty(STDERR_FILENO) == 1 && !call.flag("quiet") && !call.flag("verbose");
}

child_options child_of(const invocation& call, const lease_options& lease)
{
    const std::string line = call.text("command");
    if (line.empty() == call.child.empty())
        throw usage_error("give the command either after -- or as a line with -c");
    return {.words = line.empty() ? call.child : std::vector<std::string>{"/bin/sh", "-c", line},
        .grace = lease.grace,
        .reports_stop = shows_progress(call)};
}

/// Returns the keys whose holders are shown while colock waits.
std::vector<std::string> keys_to_show(const invocation& call, const std::vector<std::string>& keys)
{
    return shows_progress(call) ? keys : std::vector<std::string>();
}

using acquire_function = std::function<asio::awaitable<std::vector<colock::lock>>(colock::locker)>;

asio::awaitable<int> run_with_locks(backend opened, acquire_function acquire_locks,
    std::vector<std::string> watched_keys, lease_options lease, child_options child, signal_source& signals,
    const inherited_state& inherited)
{
    auto locks =
        co_await wait_interruptibly(acquire_locks(opened.locker), opened.locker, std::move(watched_keys), signals);
    check_session(opened, locks, lease);
    co_return co_await run_child(std::move(locks), std::move(child), signals, inherited);
}

/// A command of `lead` that ends sooner than this counts as one that has failed, so that it is not started again and
/// again in a busy loop.
constexpr milliseconds min_term = 1s;

/// Runs the child in each term, until a signal ends `lead` or the child cannot be executed. Returns the exit code of
/// the last child.
asio::awaitable<int> run_terms(const invocation& call, backend opened, colock::election election, lease_options lease,
    child_options child, interruptible_wait& wait, signal_source& signals, const inherited_state& inherited)
{
    std::optional<int> code;
    std::exception_ptr failure;
    const auto body = [&](colock::leadership& held) -> asio::awaitable<void> {
        // The child is ended as the stop plan decides.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        if (wait.signal() != 0 || code || failure)
            co_return;
        wait.detach_signals();
        const auto began = colock::lease_clock::now();
        child_result result;
        try {
            const std::span locks(static_cast<const colock::lock*>(&held), 1);
            check_session(opened, locks, lease);
            result = co_await supervise(locks, child, signals, inherited);
        } catch (...) {
            failure = std::current_exception();
        }
        wait.attach_signals();
        // Ctrl-C on a terminal reaches the command only.
        const bool is_interrupted = result.code == 128 + SIGINT || result.code == 128 + SIGQUIT;
        if (failure || result.received_signal || is_interrupted) {
            code = result.code;
            if (!failure && !result.loss.empty())
                failure = std::make_exception_ptr(exit_error(lost, result.loss));
            wait.end();
            co_return;
        }
        if (result.loss.empty() && result.code == 0 && colock::lease_clock::now() - began >= min_term)
            co_return;
        const std::string problem =
            result.loss.empty() ? "the command has ended with exit code " + std::to_string(result.code) : result.loss;
        if (!call.flag("quiet"))
            print_line(problem + "; the command will start again when this process leads again");
        throw std::runtime_error(problem); // The election waits before the next campaign.
    };
    try {
        co_await wait.run(election.lead(body));
    } catch (...) {
        if (!failure && !code && wait.signal() == 0)
            throw;
    }
    if (failure)
        std::rethrow_exception(failure);
    if (!code)
        wait.throw_if_interrupted();
    co_return code.value_or(success);
}

} // namespace

void add_run_options(program_options::options_description& options)
{
    options.add_options()(
        "key,k", value<std::vector<std::string>>()->value_name("KEY"), "another key; all are locked or none");
    add_acquire_options(options);
    add_child_options(options);
}

void add_lead_options(program_options::options_description& options)
{
    add_holder_options(options);
    add_child_options(options);
}

void add_detach_options(program_options::options_description& options)
{
    options.add_options()                                                                                 //
        ("ticket", value<std::string>()->value_name("FILE"), "file for the ticket, which must not exist") //
        ("ttl", value<std::string>()->value_name("D"), "time until the lock has to be adopted");
    add_acquire_options(options);
}

void add_adopt_options(program_options::options_description& options)
{
    options.add_options() //
        ("ticket", value<std::string>()->value_name("FILE"), "file with the ticket; removed after the adoption");
    add_child_options(options);
}

int run(const invocation& call)
{
    const inherited_state inherited;
    const auto keys = keys_of(call);
    const int busy_code = busy_code_of(call);
    const auto lease = lease_of(call);
    const auto child = child_of(call, lease);
    auto options = acquire_options_of(call, lease.ttl);
    options.max_hold = lease.max_hold;
    auto address = address_of(call);
    add_session_timeout(address, lease.ttl);
    asio::io_context io(1);
    signal_source signals(io.get_executor());
    const backend opened = open_backend(io.get_executor(), call, address);
    const auto acquire_locks = [&](colock::locker locker) { return acquire(std::move(locker), keys, options); };
    try {
        return run_context(io, opened.locker,
            run_with_locks(opened, acquire_locks, keys_to_show(call, keys), lease, child, signals, inherited));
    } catch (...) {
        return report_current_exception(busy_code);
    }
}

int lead(const invocation& call)
{
    const inherited_state inherited;
    const auto keys = keys_of(call);
    const auto lease = lease_of(call);
    const auto child = child_of(call, lease);
    auto address = address_of(call);
    add_session_timeout(address, lease.ttl);
    asio::io_context io(1);
    signal_source signals(io.get_executor());
    const backend opened = open_backend(io.get_executor(), call, address);
    const colock::election election(opened.locker, keys.front(),
        {.ttl = lease.ttl,
            .retry = colock::retry_policy::forever(),
            .owner = call.text("owner"),
            .comment = call.text("comment"),
            .max_hold = lease.max_hold});
    interruptible_wait wait(io.get_executor(), opened.locker, keys_to_show(call, keys), signals);
    return run_context(io, opened.locker, run_terms(call, opened, election, lease, child, wait, signals, inherited));
}

int detach(const invocation& call)
{
    const inherited_state inherited;
    const auto keys = keys_of(call);
    const int busy_code = busy_code_of(call);
    if (call.options.count("ttl") == 0)
        throw usage_error("--ttl is missing: the lock ends after this time unless it is adopted");
    const auto options = acquire_options_of(call, ttl_of(call));
    asio::io_context io(1);
    signal_source signals(io.get_executor());
    const backend opened = open_backend(io.get_executor(), call, address_of(call));
    if (!opened.adapter->traits().capabilities.tickets) {
        throw usage_error(std::string(opened.adapter->traits().name) +
                          ": a lock belongs to the session of its process, and cannot be detached");
    }
    ticket_file file(call.text("ticket"));
    const auto body = [&]() -> asio::awaitable<int> {
        auto locks = co_await wait_interruptibly(
            acquire(opened.locker, keys, options), opened.locker, keys_to_show(call, keys), signals);
        std::exception_ptr failure;
        const std::string ticket = co_await locks.front().detach();
        try {
            file.write(ticket);
        } catch (...) {
            failure = std::current_exception();
        }
        if (failure) {
            // Nobody else knows the ticket, so the lock would stay locked for its ttl.
            co_await (co_await opened.locker.adopt(ticket)).release();
            std::rethrow_exception(failure);
        }
        co_return success;
    };
    try {
        return run_context(io, opened.locker, body());
    } catch (...) {
        return report_current_exception(busy_code);
    }
}

int adopt(const invocation& call)
{
    const inherited_state inherited;
    const auto lease = lease_of(call);
    const auto child = child_of(call, lease);
    if (!call.words.empty())
        throw usage_error("'" + call.words.front() + "': the ticket names the key; write the command after --");
    const std::string file = call.text("ticket");
    const std::string ticket = read_ticket(file);
    asio::io_context io(1);
    signal_source signals(io.get_executor());
    const backend opened = open_backend(io.get_executor(), call, address_of(call));
    const auto adopt_lock = [&](colock::locker locker) -> asio::awaitable<std::vector<colock::lock>> {
        std::vector<colock::lock> locks;
        locks.push_back(co_await locker.adopt(
            ticket, {.ttl = lease.ttl, .renewal = colock::renewal::automatic, .max_hold = lease.max_hold}));
        ::unlink(file.c_str()); // The ticket is used.
        co_return locks;
    };
    return run_context(io, opened.locker, run_with_locks(opened, adopt_lock, {}, lease, child, signals, inherited));
}

} // namespace command
