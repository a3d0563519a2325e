// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "alternation.hpp"
#include "redis_connection.hpp"

#include "../tools/built_backends.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/toxiproxy.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace asio = boost::asio;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

/// Delay of a process after its release, so that the other process gets the lock.
constexpr std::chrono::milliseconds pause_after_turn{4};
/// Pause between a grant and the release, before each of a few pings. It gives the other process time to start its
/// wait. Without the pause, a ping would find the processors awake, unlike a release.
constexpr std::chrono::milliseconds silence{6};
constexpr int pings_per_turn = 2;

/// One period in which this process held the lock. Both processes use the same clock.
struct turn
{
    clock::time_point granted;
    clock::time_point released;
};

/// A separate connection to the server. It measures the round-trip time of the link while the hand-offs are measured.
class pinger
{
public:
    explicit pinger(const workload& through) : connection_(through.host, through.port) {}
    clock::duration operator()()
    {
        const auto start = clock::now();
        const auto answer = connection_.ask({"PING"});
        expect(answer == "+PONG", answer);
        return clock::now() - start;
    }

private:
    redis_connection connection_;
};

/// `each` is called with a turn after its release. It returns whether there is another turn.
template <class Each>
asio::awaitable<void> take_turns(colock::locker locker, pinger& ping, std::vector<clock::duration>& pings, Each each)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (bool again = true; again;) {
        colock::lock lock = co_await locker.acquire("hand-off");
        turn now{clock::now(), {}};
        pings.clear();
        for (int i = 0; i < pings_per_turn; ++i) {
            timer.expires_after(silence);
            co_await timer.async_wait();
            pings.push_back(ping());
        }
        now.released = clock::now();
        co_await lock.release();
        again = each(now);
        timer.expires_after(pause_after_turn);
        co_await timer.async_wait();
    }
}

template <class Each>
void run_turns(const std::string& url, Each each)
{
    asio::io_context io{1};
    const colock::locker locker(colock::make_adapter(io.get_executor(), url, tools::built_backends()));
    pinger ping(workload_at(redis_scheme, url).value());
    std::vector<clock::duration> pings;
    run_until_done(io, take_turns(locker, ping, pings, [&](const turn& now) { return each(now, pings); }));
}

std::vector<turn> read_turns(const std::filesystem::path& file)
{
    std::vector<turn> found;
    std::ifstream lines(file);
    for (clock::rep granted = 0, released = 0; lines >> granted >> released;)
        found.push_back({clock::time_point(clock::duration(granted)), clock::time_point(clock::duration(released))});
    return found;
}

/// Returns the time from each release to the next grant, if the other process got that grant.
std::vector<clock::duration> hand_offs(const std::vector<turn>& from, const std::vector<turn>& to)
{
    std::vector<clock::duration> found;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto next = std::ranges::lower_bound(to, from[i].released, {}, &turn::granted);
        if (next != to.end() && (i + 1 == from.size() || next->granted < from[i + 1].granted))
            found.push_back(next->granted - from[i].released);
    }
    return found;
}

clock::duration quantile(std::vector<clock::duration>& values, double fraction)
{
    const auto rank = static_cast<std::ptrdiff_t>(std::ceil(fraction * static_cast<double>(values.size()))) - 1;
    const auto place = values.begin() + std::max<std::ptrdiff_t>(rank, 0);
    std::ranges::nth_element(values, place);
    return *place;
}

} // namespace

void run_redis_hand_off_partner(const options& settings)
{
    run_turns(settings.backend, [](const turn& now, const auto&) {
        std::cout << now.granted.time_since_epoch().count() << ' ' << now.released.time_since_epoch().count()
                  << std::endl;
        return true;
    });
    std::abort();
}

void measure_redis_hand_off(const workload& at, const options& settings, report& results)
{
    colock::testing::toxiproxy link(static_cast<std::uint16_t>(std::stoi(at.port)));
    const auto url = "redis://127.0.0.1:" + std::to_string(link.port());
    link.add("delay", "latency", "downstream", R"({"latency":1,"jitter":0})");

    const colock::testing::temporary_folder folder;
    const auto turns_file = folder / "turns";

    const auto turn_count = std::max<std::size_t>(static_cast<std::size_t>(settings.seconds * 100.0), 20);
    std::vector<turn> ours;
    std::vector<clock::duration> round_trips;
    {
        const colock::testing::child_process partner(
            {"/proc/self/exe", "--backend", url, "--part", std::string(hand_off_partner)}, turns_file);
        run_turns(url, [&](const turn& now, const auto& pings) {
            ours.push_back(now);
            round_trips.insert(round_trips.end(), pings.begin(), pings.end());
            return ours.size() < turn_count;
        });
    }
    const auto theirs = read_turns(turns_file);

    auto times = hand_offs(ours, theirs);
    const auto back = hand_offs(theirs, ours);
    times.insert(times.end(), back.begin(), back.end());
    if (times.size() < turn_count / 2)
        throw std::runtime_error("the other process had hardly a turn");

    const auto milliseconds = [](clock::duration time) {
        return std::chrono::duration<double, std::milli>(time).count();
    };
    const auto round_trip = milliseconds(quantile(round_trips, 0.5));
    results.begin("Redis: hand-off from a release to the next waiter of another process, through a link of 1 ms");
    results.add({"hand-offs", static_cast<double>(times.size()), ""});
    results.add({"PING through the link, p50", round_trip, "ms"});
    results.add({"PING through the link, p99", milliseconds(quantile(round_trips, 0.99)), "ms"});
    results.add({"hand-off, p50, in round trips", milliseconds(quantile(times, 0.5)) / round_trip, "x", 2.2});
    results.add({"hand-off, p99, in round trips", milliseconds(quantile(times, 0.99)) / round_trip, "x", 4.0});
}

} // namespace bench
