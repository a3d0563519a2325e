// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "../tools/built_backends.hpp"
#include "alternation.hpp"
#include "peers.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;

namespace bench {
namespace {

/// Returns the value that colock stores at a key.
std::string stored_value(const std::string& url, const workload& load)
{
    std::string value;
    asio::io_context io{1};
    const colock::locker impatient(colock::make_adapter(io.get_executor(), url, tools::built_backends()),
        {.retry = colock::retry_policy::never()});
    run_until_done(io, [](colock::locker probe, const workload& at, std::string& found) -> asio::awaitable<void> {
        colock::lock lock = co_await probe.acquire("load:probe");
        found = stored_at(at, "{colock}:load:probe");
        co_await lock.release();
    }(impatient, load, value));
    return value;
}

/// Runs the driver in its own process, like the other programs: the driver's resolver creates a thread, and then
/// mutexes and reference counts of the process are slower.
rate run_driver_process(const std::string& url, const workload& load)
{
    return run_processes(own_command(url, driver_part) + load_arguments(load));
}

void add_comparisons(const workload& load, const std::vector<candidate>& candidates, report& results)
{
    const auto& ours = first(candidates, candidate::kind::ours);
    const auto& raw = first(candidates, candidate::kind::raw);
    const bool alone = load.in_flight == 1;
    for (const candidate& each : candidates) {
        results.add({each.name + ", pairs per second", speed(each), "/s"});
        if (&each == &raw)
            continue;
        measurement reached{each.name + " / raw", ratio(each, raw), "x"};
        if (&each == &ours && !alone)
            reached.lower_limit = 0.75;
        results.add(reached);
    }
    if (alone) {
        measurement comparison{"colock / driver's loop", ratio(ours, first(candidates, candidate::kind::driver)), "x"};
        comparison.lower_limit = 0.85;
        results.add(comparison);
    }
    if (const auto* const best = best_peer(candidates)) {
        for (const candidate& each : candidates) {
            if (each.is != candidate::kind::ours && each.is != candidate::kind::ours_shared)
                continue;
            measurement comparison{each.name + " / " + best->name + ", the best peer", ratio(each, *best), "x"};
            if (!alone)
                comparison.lower_limit = each.is == candidate::kind::ours ? 3.5 : 2.0;
            results.add(comparison);
        }
    }
    for (const candidate& each : candidates)
        add_costs(each, results, &each == &ours && load.in_flight == 64 ? std::optional(2.0) : std::nullopt);
    if (const auto* const best = best_peer(candidates))
        results.add({"colock / " + best->name + ", client and server with a processor each",
            cpu_bound_rate(ours) / cpu_bound_rate(*best), "x"});
    results.add(
        {"colock / raw, client and server with a processor each", cpu_bound_rate(ours) / cpu_bound_rate(raw), "x"});
}

void add_contended_comparisons(const std::vector<candidate>& candidates, report& results)
{
    const auto* const best = best_peer(candidates);
    for (const candidate& each : candidates) {
        results.add({each.name + ", pairs per second", speed(each), "/s"});
        if (!best || each.is == candidate::kind::peer)
            continue;
        measurement comparison{each.name + " / " + best->name + ", the best peer", ratio(each, *best), "x"};
        comparison.lower_limit = 2.0;
        results.add(comparison);
    }
    for (const candidate& each : candidates)
        results.add({each.name + ", longest acquire to release",
            median_over_rounds(each, [](const rate& round) { return round.max_pair_time_ms; }), "ms"});
    for (const candidate& each : candidates)
        add_costs(each, results);
    for (const candidate& each : candidates)
        if (best && each.is != candidate::kind::peer)
            results.add({each.name + " / " + best->name + ", client and server with a processor each",
                cpu_bound_rate(each) / cpu_bound_rate(*best), "x"});
}

} // namespace

void run_driver_and_exit(const options& settings)
{
    workload load = workload_of(redis_scheme, settings);
    load.in_flight = settings.concurrency;
    load.keys = settings.keys;
    print_and_exit(run_driver(load, stored_value(settings.backend, load)));
}

chart measure_redis_uncontended(const options& settings, report& results)
{
    workload load = workload_of(redis_scheme, settings);
    const auto value = stored_value(settings.backend, load);
    const auto ours = [&](colock::lock_mode mode) {
        return [&, mode](const workload& slice_load) { return run_ours(settings.backend, slice_load, mode); };
    };

    std::vector<candidate> candidates{
        {"colock", candidate::kind::ours, ours(colock::lock_mode::exclusive)},
        {"raw", candidate::kind::raw, [&](const workload& slice_load) { return run_raw(slice_load, value); }},
        {"driver's loop", candidate::kind::driver,
            [&](const workload& slice_load) { return run_driver_process(settings.backend, slice_load); }},
        {"colock, shared", candidate::kind::ours_shared, ours(colock::lock_mode::shared)},
    };
    for (candidate& each : read_programs(settings.peers, results))
        candidates.push_back(std::move(each));

    chart drawn{.title = "Redis: uncontended acquire+release, as a share of the same commands sent raw",
        .bars = {},
        .unit = "x",
        .limit = 0.75};
    for (const std::size_t in_flight : {1U, 64U, 1000U}) {
        load.in_flight = in_flight;
        load.keys = in_flight * 100;
        run_rounds(load, candidates, settings.rounds, server_cpu_us);
        results.begin("Redis: " + std::to_string(in_flight) + " in flight, each on keys of its own, " +
                      describe_rounds(settings.rounds));
        add_comparisons(load, candidates, results);
        for (const candidate& each : candidates)
            if (each.is != candidate::kind::raw)
                drawn.bars.emplace_back(std::to_string(in_flight) + " in flight, " + each.name,
                    ratio(each, first(candidates, candidate::kind::raw)));
    }
    return drawn;
}

void measure_redis_contended(const options& settings, report& results)
{
    workload load = workload_of(redis_scheme, settings);
    const auto ours = [&](std::size_t lockers) {
        return [&, lockers](const workload& slice_load) {
            return run_ours(settings.backend, slice_load, colock::lock_mode::exclusive, lockers);
        };
    };
    std::vector<candidate> candidates{
        {"colock", candidate::kind::ours, ours(1)},
        {"colock, two adapters", candidate::kind::ours, ours(2)},
    };
    for (candidate& each : read_programs(settings.peers, results))
        candidates.push_back(std::move(each));
    for (const std::size_t in_flight : {64U, 1000U}) {
        load.in_flight = in_flight;
        load.keys = in_flight / 8;
        run_rounds(load, candidates, settings.rounds, server_cpu_us);
        results.begin("Redis: " + std::to_string(in_flight) + " contend for " + std::to_string(load.keys) +
                      " keys, eight for each, " + describe_rounds(settings.rounds));
        add_contended_comparisons(candidates, results);
    }
}

std::optional<chart> run_redis(const options& settings, report& results)
{
    if (settings.part == hand_off_partner)
        run_redis_hand_off_partner(settings);
    if (settings.part == driver_part)
        run_driver_and_exit(settings);
    const auto at = workload_at(redis_scheme, settings.backend);
    if (!at)
        return std::nullopt;
    chart drawn;
    if (!settings.peers.empty() && settings.wants("uncontended"))
        drawn = measure_redis_uncontended(settings, results);
    if (settings.wants("contended"))
        measure_redis_contended(settings, results);
    if (settings.wants("groups"))
        measure_redis_groups(settings, results);
    if (settings.wants("hand-off")) {
        if (at->host == "127.0.0.1")
            measure_redis_hand_off(*at, settings, results);
        else
            results.fact("left out", "hand-off, which needs a server on 127.0.0.1");
    }
    if (settings.wants("waiters"))
        measure_redis_waiters(*at, settings, results);
    if (settings.wants("stalls"))
        measure_redis_stalls(*at, settings, results);
    if (const auto* const cluster = std::getenv("COLOCK_TEST_REDIS_CLUSTER"); cluster && settings.wants("cluster")) {
        if (settings.peers.empty())
            measure_redis_cluster(settings, cluster, results);
        else
            measure_redis_cluster_peers(settings, cluster, results);
    }
    // Takes three minutes.
    if (settings.part == "fail-over")
        measure_redis_fail_over(results);
    // This part must run last, because colock locks its mutexes only after the process has started a thread.
    if (settings.wants("threads"))
        measure_redis_threads(settings, stored_value(settings.backend, *at), results);
    return drawn;
}

} // namespace bench
