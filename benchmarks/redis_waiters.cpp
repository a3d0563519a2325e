// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "allocations.hpp"
#include "crowd.hpp"
#include "wire.hpp"

#include <colock/connect.hpp>
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

/// Commands that reached the server between two moments, as MONITOR tells: those of clients, and those inside scripts.
/// Signs of life are left out: they follow the clock.
class command_count
{
public:
    explicit command_count(const race& at) : at_(at), monitor_(at.host, at.port)
    {
        const auto answer = monitor_.ask({"MONITOR"});
        expect(answer == "+OK", answer);
    }

    void stop()
    {
        wire(at_.host, at_.port).ask({"ECHO", "end of count"});
        for (bool ended = false; !ended;)
            monitor_.lines([&](std::string_view line) {
                ended = ended || line.find("\"end of count\"") != line.npos;
                if (!ended && line.find("] \"PING\"") == line.npos)
                    ++(line.find(" lua] ") == line.npos ? by_clients : in_scripts);
            });
    }

    std::uint64_t by_clients = 0;
    std::uint64_t in_scripts = 0;

private:
    const race& at_;
    wire monitor_;
};

std::size_t subscribers(const race& at)
{
    wire asked(at.host, at.port);
    expect(asked.ask({"PUBSUB", "NUMSUB", "{colock}:" + std::string(crowd_key)}) == "*2", "PUBSUB with an error");
    asked.line();
    asked.line();
    return std::stoul(asked.line().substr(1));
}

void measure_commands(const race& at, const options& settings, report& found)
{
    constexpr std::uint64_t releases = 1000;
    found.begin("Redis: what waiters on one key cost the server, counted over " + std::to_string(releases) +
                " releases, each waiter waiting anew");
    for (const std::size_t lockers : {1U, 10U}) {
        std::optional<double> limit;
        for (const std::size_t waiters : {10U, 100U, 1000U}) {
            if (waiters / lockers < 2)
                continue;
            crowd people(settings.backend, lockers);
            people.hold();
            people.gather(waiters / lockers, [&] { return subscribers(at) >= lockers; });
            const auto name = std::to_string(waiters) + " waiters of " +
                              (lockers == 1 ? "one locker" : std::to_string(lockers) + " lockers");
            const auto listening = static_cast<double>(subscribers(at));
            command_count count(at);
            people.pass_on(releases);
            count.stop();
            const auto per_release = [&](std::uint64_t commands) {
                return static_cast<double>(commands) / static_cast<double>(people.releases());
            };
            const auto all = per_release(count.by_clients + count.in_scripts);
            found.add({name + ", subscribers", listening, "", static_cast<double>(lockers), kind::counted});
            found.add({name + ", requests per release", per_release(count.by_clients), ""});
            found.add({name + ", commands per release, those inside scripts too", all, "", limit, kind::counted});
            // Who of several lockers is first is a matter of chance, and costs more or less.
            if (!limit)
                limit = all + (lockers == 1 ? 1.0 : std::max(1.0, all / 4.0));
            people.disperse();
        }
    }
}

void measure_memory(const race& at, const options& settings, report& found)
{
    constexpr std::size_t many = 1000;
    found.begin("Redis: bytes per waiter, " + std::to_string(many) + " on one key, the caller's coroutine included");
    crowd people(settings.backend, 1);
    const auto listens = [&at] { return subscribers(at) > 0; };
    people.hold();
    people.gather(many / 10, listens);
    people.disperse();
    people.hold();
    malloc_trim(0);
    const byte_count counted;
    const auto resident = resident_bytes();
    people.gather(many, listens);
    const auto bytes = static_cast<double>(counted.grown()) / many;
    const auto grown = static_cast<double>(resident_bytes() - std::min(resident, resident_bytes())) / many;
    found.add({"acquire, heap", bytes, "bytes", 2048.0, kind::counted});
    found.add({"acquire, resident set", grown, "bytes"});
    people.disperse();
}

} // namespace

void measure_redis_waiters(const race& at, const options& settings, report& found)
{
    measure_commands(at, settings, found);
    measure_memory(at, settings, found);
}

void measure_redis_growth(const options& settings, report& found)
{
    constexpr std::size_t in_flight = 64;
    const auto wanted =
        std::clamp<std::uint64_t>(static_cast<std::uint64_t>(settings.seconds * 500'000.0), 10'000, 1'000'000);
    std::uint64_t pairs = 0;
    std::size_t early = 0;
    std::size_t running = in_flight;

    asio::io_context io{1};
    const colock::locker locker(colock::make_adapter(io.get_executor(), settings.backend));
    const auto work = [&](std::size_t number) -> asio::awaitable<void> {
        for (std::size_t key = number; pairs < wanted; key = (key + in_flight) % (in_flight * 100)) {
            colock::lock lock = co_await locker.acquire(race::name(key));
            co_await lock.release();
            if (++pairs == wanted / 10)
                early = resident_bytes();
        }
        if (--running == 0)
            io.stop();
    };
    for (std::size_t number = 0; number < in_flight; ++number)
        asio::co_spawn(io, work(number), asio::detached);
    io.run();

    found.begin("Redis: memory over " + std::to_string(wanted) + " pairs, " + std::to_string(in_flight) + " in flight");
    found.add({"resident set after a tenth of them", static_cast<double>(early) / 1024.0, "KiB"});
    found.add({"after all of them, as a multiple", static_cast<double>(resident_bytes()) / static_cast<double>(early),
        "x", 1.05});
}

} // namespace bench
