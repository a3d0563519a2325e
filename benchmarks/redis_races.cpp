// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "alternation.hpp"
#include "peers.hpp"

#include <colock/connect.hpp>
#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;

namespace bench {
namespace {

/// What colock stores at a key.
std::string stored_value(const std::string& url, const race& of)
{
    std::string value;
    asio::io_context io{1};
    const colock::locker impatient(
        colock::make_adapter(io.get_executor(), url), {.retry = colock::retry_policy::never()});
    run_until_done(io, [](colock::locker probe, const race& where, std::string& found) -> asio::awaitable<void> {
        colock::lock lock = co_await probe.acquire("load:probe");
        found = stored_at(where, "{colock}:load:probe");
        co_await lock.release();
    }(impatient, of, value));
    return value;
}

/// In a process of its own, as the others: the driver's resolver makes a thread, and from then on a process is slower.
rate run_driver_apart(const std::string& url, const race& of)
{
    return run_processes(own_command(url, driver_program) + load_of(of));
}

void judge(const race& of, const std::vector<rival>& rivals, report& found)
{
    const auto& ours = first(rivals, rival::kind::ours);
    const auto& raw = first(rivals, rival::kind::raw);
    const bool alone = of.in_flight == 1;
    for (const rival& each : rivals) {
        found.add({each.name + ", pairs per second", speed(each), "/s"});
        if (&each == &raw)
            continue;
        measurement reached{each.name + " / raw", ratio(each, raw), "x"};
        if (&each == &ours && !alone)
            reached.least = 0.75;
        found.add(reached);
    }
    if (alone) {
        measurement beside{"colock / driver's loop", ratio(ours, first(rivals, rival::kind::driver)), "x"};
        beside.least = 0.85;
        found.add(beside);
    }
    if (const auto* const best = best_peer(rivals)) {
        for (const rival& each : rivals) {
            if (each.is != rival::kind::ours && each.is != rival::kind::ours_shared)
                continue;
            measurement beside{each.name + " / " + best->name + ", the best peer", ratio(each, *best), "x"};
            if (!alone)
                beside.least = each.is == rival::kind::ours ? 3.5 : 2.0;
            found.add(beside);
        }
    }
    for (const rival& each : rivals)
        add_costs(each, found, &each == &ours && of.in_flight == 64 ? std::optional(2.0) : std::nullopt);
    if (const auto* const best = best_peer(rivals))
        found.add({"colock / " + best->name + ", were nothing else running", possible(ours) / possible(*best), "x"});
    found.add({"colock / raw, were nothing else running", possible(ours) / possible(raw), "x"});
}

void judge_contended(const std::vector<rival>& rivals, report& found)
{
    const auto* const best = best_peer(rivals);
    for (const rival& each : rivals) {
        found.add({each.name + ", pairs per second", speed(each), "/s"});
        if (!best || each.is == rival::kind::peer)
            continue;
        measurement beside{each.name + " / " + best->name + ", the best peer", ratio(each, *best), "x"};
        beside.least = 2.0;
        found.add(beside);
    }
    for (const rival& each : rivals)
        found.add({each.name + ", longest turn", typical(each, [](const rate& round) { return round.longest_turn_ms; }),
            "ms"});
    for (const rival& each : rivals)
        add_costs(each, found);
    for (const rival& each : rivals)
        if (best && each.is != rival::kind::peer)
            found.add({each.name + " / " + best->name + ", were nothing else running", possible(each) / possible(*best),
                "x"});
}

} // namespace

void run_driver_program(const options& settings)
{
    race of = race_of(redis_scheme, settings);
    of.in_flight = settings.concurrency;
    of.keys = settings.keys;
    answer(run_driver(of, stored_value(settings.backend, of)));
}

chart run_uncontended_race(const options& settings, report& found)
{
    race of = race_of(redis_scheme, settings);
    const auto value = stored_value(settings.backend, of);
    const auto ours = [&](colock::lock_mode mode) {
        return [&, mode](const race& now) { return run_ours(settings.backend, now, mode); };
    };

    std::vector<rival> rivals{
        {"colock", rival::kind::ours, ours(colock::lock_mode::exclusive)},
        {"raw", rival::kind::raw, [&](const race& now) { return run_raw(now, value); }},
        {"driver's loop", rival::kind::driver,
            [&](const race& now) { return run_driver_apart(settings.backend, now); }},
        {"colock, shared", rival::kind::ours_shared, ours(colock::lock_mode::shared)},
    };
    for (rival& each : read_programs(settings.peers, found))
        rivals.push_back(std::move(each));

    chart drawn{.title = "Redis: uncontended acquire+release, as a share of the same commands sent raw",
        .bars = {},
        .unit = "x",
        .limit = 0.75};
    for (const std::size_t in_flight : {1U, 64U, 1000U}) {
        of.in_flight = in_flight;
        of.keys = in_flight * 100;
        run_rounds(of, rivals, settings.rounds, server_cpu_us);
        found.begin("Redis: " + std::to_string(in_flight) + " in flight, each on keys of its own, " +
                    of_rounds(settings.rounds));
        judge(of, rivals, found);
        for (const rival& each : rivals)
            if (each.is != rival::kind::raw)
                drawn.bars.emplace_back(std::to_string(in_flight) + " in flight, " + each.name,
                    ratio(each, first(rivals, rival::kind::raw)));
    }
    return drawn;
}

void run_contended_race(const options& settings, report& found)
{
    race of = race_of(redis_scheme, settings);
    const auto ours = [&](std::size_t lockers) {
        return [&, lockers](
                   const race& now) { return run_ours(settings.backend, now, colock::lock_mode::exclusive, lockers); };
    };
    std::vector<rival> rivals{
        {"colock", rival::kind::ours, ours(1)},
        {"colock, two adapters", rival::kind::ours, ours(2)},
    };
    for (rival& each : read_programs(settings.peers, found))
        rivals.push_back(std::move(each));
    for (const std::size_t in_flight : {64U, 1000U}) {
        of.in_flight = in_flight;
        of.keys = in_flight / 8;
        run_rounds(of, rivals, settings.rounds, server_cpu_us);
        found.begin("Redis: " + std::to_string(in_flight) + " contend for " + std::to_string(of.keys) +
                    " keys, eight for each, " + of_rounds(settings.rounds));
        judge_contended(rivals, found);
    }
}

std::optional<chart> run_redis(const options& settings, report& found)
{
    if (settings.part == hand_off_partner)
        run_redis_hand_off_partner(settings);
    if (settings.part == driver_program)
        run_driver_program(settings);
    const auto at = race_at(redis_scheme, settings.backend);
    if (!at)
        return std::nullopt;
    chart drawn;
    if (!settings.peers.empty() && settings.wants("uncontended"))
        drawn = run_uncontended_race(settings, found);
    if (settings.wants("contended"))
        run_contended_race(settings, found);
    if (settings.wants("groups"))
        measure_redis_groups(settings, found);
    if (settings.wants("hand-off")) {
        if (at->host == "127.0.0.1")
            measure_redis_hand_off(*at, settings, found);
        else
            found.fact("left out", "hand-off, which wants a server on 127.0.0.1");
    }
    if (settings.wants("waiters"))
        measure_redis_waiters(*at, settings, found);
    if (settings.wants("stalls"))
        measure_redis_stalls(*at, settings, found);
    if (settings.wants("growth"))
        measure_redis_growth(settings, found);
    return drawn;
}

} // namespace bench
