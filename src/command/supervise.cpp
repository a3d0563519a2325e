// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/supervise.hpp"

#include "command/exit_code.hpp"
#include "command/process.hpp"
#include "command/signal_source.hpp"
#include "command/stop_plan.hpp"
#include "util/text_escaping.hpp"

#include <colock/clock.hpp>
#include <colock/error.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace command {

namespace asio = boost::asio;

namespace {

using namespace std::chrono_literals;
using colock::lease_clock;
using lease_timer = asio::basic_waitable_timer<lease_clock>;

/// The end of a lease may become earlier without an event, for example if the server shortens the session at a
/// reconnect. So it is read this often at least.
constexpr std::chrono::milliseconds check_interval = 1s;
/// Interval at which the group is checked after the child has ended, because the end of a process whose parent is
/// outside of the group is not reported.
constexpr std::chrono::milliseconds group_check_interval = 20ms;

/// State that the handlers of asynchronous operations set for the supervising coroutine.
struct events
{
    explicit events(const asio::any_io_executor& executor) : wake(executor) {}

    /// Cancelled to wake the coroutine. The coroutine and all handlers run on one thread, so no event is missed.
    lease_timer wake;
    /// Description of the first lock whose loss became known.
    std::string loss;
    /// Whether the lease of a lost lock has ended. Otherwise the lock was broken or taken.
    bool has_ended = false;
};

/// Returns the lock whose lease ends first.
const colock::lock& first_to_end(std::span<const colock::lock> locks)
{
    return *std::ranges::min_element(locks, {}, &colock::lock::expires_at);
}

std::vector<std::pair<std::string, std::string>> variables_of(std::span<const colock::lock> locks)
{
    std::string keys;
    std::string fences;
    for (const colock::lock& each : locks) {
        const char* const separator = keys.empty() ? "" : "\n";
        (keys += separator) += each.key();
        (fences += separator) += each.fence() == 0 ? std::string() : std::to_string(each.fence());
    }
    return {{"COLOCK_KEY", std::move(keys)}, {"COLOCK_FENCE", std::move(fences)}};
}

void watch(std::span<const colock::lock> locks, const std::shared_ptr<events>& state)
{
    for (const colock::lock& each : locks) {
        each.async_lost([state, key = each.key()](const colock::error_code& error, colock::lost_reason reason) {
            if (error || reason == colock::lost_reason::released)
                return;
            if (reason == colock::lost_reason::expired || reason == colock::lost_reason::session)
                state->has_ended = true;
            if (state->loss.empty())
                state->loss = colock::detail::quoted(key) + " was lost (" + colock::to_string(reason) + ')';
            state->wake.cancel();
        });
    }
}

/// Releases the locks at the same time, so that a server that does not answer is waited for only once. Returns the
/// description of a lock that was not held any more.
asio::awaitable<std::string> release(std::vector<colock::lock> locks)
{
    const auto executor = co_await asio::this_coro::executor;
    const auto start = [&](colock::lock& each) {
        return asio::co_spawn(executor, each.release(colock::on_failure::raise), asio::deferred);
    };
    std::vector<std::string> keys;
    std::vector<decltype(start(locks.front()))> releases;
    for (colock::lock& each : locks) {
        keys.emplace_back(each.key());
        releases.push_back(start(each));
    }
    const auto results = co_await asio::experimental::make_parallel_group(std::move(releases))
                             .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
    std::string loss;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        try {
            if (const std::exception_ptr& failure = std::get<1>(results)[i])
                std::rethrow_exception(failure);
        } catch (const colock::error& problem) {
            if (problem.code() == colock::errc::not_held)
                loss = "the lock " + colock::detail::quoted(keys[i]) + " was lost before the command had ended";
            else
                print_line(std::string("warning: ") + problem.what());
        }
    }
    co_return loss;
}

} // namespace

asio::awaitable<child_result> supervise(std::span<const colock::lock> locks, child_options options,
    signal_source& signals, const inherited_state& inherited)
{
    child_result result;
    const auto state = std::make_shared<events>(co_await asio::this_coro::executor);
    stop_plan plan(options.grace);
    std::optional<child_group> child(std::in_place, inherited, std::move(options.words), variables_of(locks));
    signals.set_handler([&](int signal) {
        if (is_terminating(signal)) {
            child->send_and_continue(signal);
            plan.on_signal(lease_clock::now());
            result.received_signal = true;
        } else if (signal != SIGCHLD) {
            child->send(signal);
        }
        state->wake.cancel();
    });
    watch(locks, state);

    bool was_stopped = false;
    for (;;) {
        child->reap();
        if (std::exchange(was_stopped, child->is_stopped()) != child->is_stopped() && was_stopped &&
            options.reports_stop)
            print_line("the command is stopped; 'kill -CONT " + std::to_string(::getpid()) + "' continues it");
        const auto now = lease_clock::now();
        if (child->exit_code() && !(plan.is_terminating() && child->has_members()))
            break;
        if (!state->loss.empty())
            plan.on_lost(now, state->has_ended);
        const auto decision = plan.next(now, first_to_end(locks).expires_at());
        if (decision.terminate)
            child->send_and_continue(SIGTERM);
        if (decision.kill)
            child->send(SIGKILL);
        state->wake.expires_at(
            std::min(decision.until, now + (child->exit_code() ? group_check_interval : check_interval)));
        co_await state->wake.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    signals.set_handler(nullptr);
    result.code = child->exit_code().value();
    if (!state->loss.empty())
        result.loss = "the lock " + state->loss + (plan.is_lost() ? "; the command was ended" : "");
    else if (plan.is_lost()) {
        result.loss = "the lock " + colock::detail::quoted(first_to_end(locks).key()) +
                      " was about to expire; the command was ended";
    }
    // The destructor of `child` takes the terminal back here, before the caller releases the locks, which may take some
    // time.
    co_return result;
}

asio::awaitable<int> run_child(
    std::vector<colock::lock> locks, child_options options, signal_source& signals, const inherited_state& inherited)
{
    auto result = co_await supervise(locks, std::move(options), signals, inherited);
    const std::string found = co_await release(std::move(locks));
    if (result.loss.empty())
        result.loss = found;
    if (result.loss.empty())
        co_return result.code;
    throw exit_error(lost, result.loss);
}

} // namespace command
