// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "../tools/built_backends.hpp"
#include "allocations.hpp"
#include "contention.hpp"
#include "redis_connection.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <malloc.h>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

/// Counts the commands that the server received between two moments, as reported by MONITOR: commands of clients and
/// commands inside scripts. Pings are not counted, because their number depends on time.
class command_count
{
public:
    explicit command_count(const workload& at) : at_(at), monitor_(at.host, at.port)
    {
        const auto answer = monitor_.ask({"MONITOR"});
        expect(answer == "+OK", answer);
    }

    void stop()
    {
        redis_connection(at_.host, at_.port).ask({"ECHO", "end of count"});
        for (bool is_complete = false; !is_complete;)
            monitor_.read_lines([&](std::string_view line) {
                is_complete = is_complete || line.find("\"end of count\"") != line.npos;
                if (!is_complete && line.find("] \"PING\"") == line.npos)
                    ++(line.find(" lua] ") == line.npos ? by_clients : in_scripts);
            });
    }

    std::uint64_t by_clients = 0;
    std::uint64_t in_scripts = 0;

private:
    const workload& at_;
    redis_connection monitor_;
};

std::size_t subscribers(const workload& at)
{
    redis_connection connection(at.host, at.port);
    expect(
        connection.ask({"PUBSUB", "NUMSUB", "{colock}:" + std::string(contended_key)}) == "*2", "PUBSUB with an error");
    connection.read_line();
    connection.read_line();
    return std::stoul(connection.read_line().substr(1));
}

void measure_commands(const workload& at, const options& settings, report& results)
{
    constexpr std::uint64_t releases = 1000;
    results.begin("Redis: what waiters on one key cost the server, counted over " + std::to_string(releases) +
                  " releases, each waiter waits again");
    for (const std::size_t lockers : {1U, 10U}) {
        std::optional<double> limit;
        for (const std::size_t waiters : {10U, 100U, 1000U}) {
            if (waiters / lockers < 2)
                continue;
            contention waiting(settings.backend, lockers);
            waiting.hold();
            waiting.start_waiters(waiters / lockers, [&] { return subscribers(at) >= lockers; });
            const auto name = std::to_string(waiters) + " waiters of " +
                              (lockers == 1 ? "one locker" : std::to_string(lockers) + " lockers");
            const auto listening = static_cast<double>(subscribers(at));
            command_count count(at);
            waiting.pass_on(releases);
            count.stop();
            const auto per_release = [&](std::uint64_t commands) {
                return static_cast<double>(commands) / static_cast<double>(waiting.releases());
            };
            const auto all = per_release(count.by_clients + count.in_scripts);
            results.add({name + ", subscribers", listening, "", static_cast<double>(lockers), kind::counted});
            results.add({name + ", requests per release", per_release(count.by_clients), ""});
            results.add(
                {name + ", commands per release, including those inside scripts", all, "", limit, kind::counted});
            // It depends on chance which of several lockers is first, and the cost depends on it.
            if (!limit)
                limit = all + (lockers == 1 ? 1.0 : std::max(1.0, all / 4.0));
            waiting.finish();
        }
    }
}

void measure_memory(const workload& at, const options& settings, report& results)
{
    constexpr std::size_t many = 1000;
    results.begin("Redis: bytes per waiter, " + std::to_string(many) + " on one key, the caller's coroutine included");
    contention waiting(settings.backend, 1);
    const auto listens = [&at] { return subscribers(at) > 0; };
    waiting.hold();
    waiting.start_waiters(many / 10, listens);
    waiting.finish();
    waiting.hold();
    malloc_trim(0);
    const byte_count counted;
    const auto resident = resident_bytes();
    waiting.start_waiters(many, listens);
    const auto bytes = static_cast<double>(counted.grown()) / many;
    const auto grown = static_cast<double>(resident_bytes() - std::min(resident, resident_bytes())) / many;
    results.add({"acquire, heap", bytes, "bytes", 2048.0, kind::counted});
    results.add({"acquire, resident set", grown, "bytes"});
    waiting.finish();
}

} // namespace

void measure_redis_waiters(const workload& at, const options& settings, report& results)
{
    measure_commands(at, settings, results);
    measure_memory(at, settings, results);
}

} // namespace bench
