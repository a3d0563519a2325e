// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper.hpp"
#include "peers.hpp"

#include "held_locks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

namespace bench {
namespace {

/// The `--part` with which this program runs as one of several worker processes, like the programs of other libraries.
constexpr std::string_view worker_part = "worker-program";
constexpr std::size_t processes = 4;

std::string url_of(const workload& at)
{
    return std::string(zookeeper_scheme) + "://" + at.host + ':' + at.port;
}

/// Environment variables with the addresses of the servers that scripts/servers.sh has started.
constexpr std::array started{"COLOCK_TEST_ZOOKEEPER", "COLOCK_TEST_ZOOKEEPER_2", "COLOCK_TEST_ZOOKEEPER_3"};

double zookeeper_cpu_us(const workload& at)
{
    for (const std::string name : started) {
        const char* const url = std::getenv(name.c_str());
        if (url && url == url_of(at))
            return process_cpu_us((name + "_ID").c_str());
    }
    return std::numeric_limits<double>::quiet_NaN();
}

/// Returns the server of the options, and the servers that were started with it.
std::vector<workload> servers_of(const options& settings)
{
    std::vector<workload> all{workload_of(zookeeper_scheme, settings)};
    const char* const first = std::getenv(started.front());
    if (!first || first != url_of(all.front()))
        return all;
    for (const char* const name : std::span(started).subspan(1))
        if (const char* const url = std::getenv(name)) {
            const auto at = workload_at(zookeeper_scheme, url).value();
            all.push_back(all.front());
            all.back().host = at.host;
            all.back().port = at.port;
        }
    return all;
}

/// Runs each round on another server. Between servers that were started alike, rates and ratios differ by 10 % and
/// more. The reason is presumably what their just-in-time compilers optimised in the first seconds.
void run_rounds_everywhere(
    const std::vector<workload>& servers, const workload& load, std::vector<candidate>& candidates, std::size_t rounds)
{
    if (servers.size() == 1)
        return run_rounds(load, candidates, rounds, zookeeper_cpu_us);
    for (candidate& each : candidates)
        each.found.clear();
    for (std::size_t round = 0; round < rounds; ++round) {
        workload server_load = load;
        server_load.host = servers[round % servers.size()].host;
        server_load.port = servers[round % servers.size()].port;
        run_round(server_load, candidates, 1, zookeeper_cpu_us);
    }
}

/// Lower limits for one number of workers: the rate relative to Curator's, and relative to that of the raw loop.
struct required_ratios
{
    std::size_t in_flight;
    double min_curator_ratio;
    double min_raw_ratio;
};

const candidate* curator_of(const std::vector<candidate>& candidates)
{
    const auto found = std::ranges::find(candidates, "Curator", &candidate::name);
    return found == candidates.end() ? nullptr : &*found;
}

void compare(const std::vector<candidate>& candidates, double lower_limit, report& results)
{
    const auto& ours = first(candidates, candidate::kind::ours);
    for (const candidate& each : candidates) {
        if (each.is != candidate::kind::peer)
            continue;
        measurement comparison{ours.name + " / " + each.name, ratio(ours, each), "x"};
        if (&each == curator_of(candidates))
            comparison.lower_limit = lower_limit;
        results.add(comparison);
    }
}

std::vector<candidate> with_programs(
    std::vector<candidate> ours, const options& settings, report& results, std::size_t in_each = 1)
{
    for (candidate& each : read_programs(settings.peers, results, in_each))
        ours.push_back(std::move(each));
    return ours;
}

chart run_uncontended(const options& settings, report& results)
{
    const auto servers = servers_of(settings);
    workload load = servers.front();
    auto candidates = with_programs(
        {
            {"colock", candidate::kind::ours,
                [&](const workload& slice_load) {
                    return run_ours(url_of(slice_load), slice_load, colock::lock_mode::exclusive);
                }},
            {"raw", candidate::kind::raw, run_raw_nodes},
        },
        settings, results);
    chart drawn{.title = "ZooKeeper: uncontended acquire+release, as multiples of Curator's rate",
        .bars = {},
        .unit = "x",
        .limit = {}};
    for (const required_ratios& each :
        {required_ratios{1, 1.4, 0.0}, required_ratios{16, 2.0, 0.0}, required_ratios{256, 2.2, 0.55}})
    {
        load.in_flight = each.in_flight;
        // With so few keys, the folder of each key exists after the warm-up.
        load.keys = each.in_flight * 4;
        // With one request in flight, most of the time is spent waiting for processors to wake up. Then two
        // measurements of two seconds differ by up to a quarter, so more turns are averaged.
        load.turns = each.in_flight == 1 ? 4 : 1;
        run_rounds_everywhere(servers, load, candidates, settings.rounds);
        results.begin("ZooKeeper: " + std::to_string(load.in_flight) + " in flight, each on keys of its own, " +
                      describe_rounds(settings.rounds, load.turns) +
                      (servers.size() > 1 ? ", each on another server" : ""));
        for (const candidate& one : candidates)
            results.add({one.name + ", pairs per second", speed(one), "/s"});
        measurement reached{"colock / raw", ratio(candidates[0], candidates[1]), "x"};
        if (each.min_raw_ratio > 0.0)
            reached.lower_limit = each.min_raw_ratio;
        results.add(reached);
        compare(candidates, each.min_curator_ratio, results);
        for (const candidate& one : candidates)
            add_costs(one, results);
        if (const auto* const curator = curator_of(candidates)) {
            results.add({"colock / Curator, client and server with a processor each",
                cpu_bound_rate(candidates[0]) / cpu_bound_rate(*curator), "x"});
            for (const candidate& one : candidates)
                drawn.bars.emplace_back(
                    std::to_string(load.in_flight) + " in flight, " + one.name, ratio(one, *curator));
        }
    }
    return drawn;
}

void add_contended(const std::vector<candidate>& candidates, double lower_limit, report& results)
{
    for (const candidate& each : candidates)
        results.add({each.name + ", hand-offs per second", speed(each), "/s"});
    compare(candidates, lower_limit, results);
    for (const candidate& each : candidates)
        results.add({each.name + ", longest acquire to release",
            median_over_rounds(each, [](const rate& round) { return round.max_pair_time_ms; }), "ms"});
    for (const candidate& each : candidates)
        add_costs(each, results);
}

void run_contended(const options& settings, report& results)
{
    workload load = workload_of(zookeeper_scheme, settings);
    load.in_flight = 64;
    load.keys = 1;
    auto candidates = with_programs({{"colock", candidate::kind::ours,
                                        [&](const workload& slice_load) {
                                            return run_ours(settings.backend, slice_load, colock::lock_mode::exclusive);
                                        }}},
        settings, results);
    run_rounds(load, candidates, settings.rounds, zookeeper_cpu_us);
    results.begin("ZooKeeper: 64 callers in one process contend for one key, " + describe_rounds(settings.rounds));
    add_contended(candidates, 2.0, results);
}

/// Returns the load with a start time that all processes share.
workload with_common_start(workload load)
{
    // By then, each process has started and finished its warm-up. In a short run it may not have finished, but only the
    // counts of such a run are used.
    const auto ready = load.time * 3 + std::chrono::seconds(1);
    load.start_time = std::chrono::time_point_cast<std::chrono::system_clock::duration>(
        std::chrono::ceil<std::chrono::seconds>(std::chrono::system_clock::now() + ready));
    return load;
}

void run_contending_processes(const options& settings, report& results)
{
    workload load = workload_of(zookeeper_scheme, settings);
    load.in_flight = 1;
    load.keys = 1;
    auto candidates =
        with_programs({{"colock", candidate::kind::ours,
                          [&](const workload& slice_load) {
                              return run_processes(
                                  own_command(settings.backend, worker_part) + load_arguments(slice_load), processes);
                          }}},
            settings, results, processes);
    for (candidate& each : candidates)
        each.run = [run = std::move(each.run)](
                       const workload& slice_load) { return run(with_common_start(slice_load)); };
    run_rounds(load, candidates, settings.rounds, zookeeper_cpu_us);
    results.begin("ZooKeeper: " + std::to_string(processes) + " processes contend for one key, one waiter each, " +
                  describe_rounds(settings.rounds));
    add_contended(candidates, 1.3, results);
}

[[noreturn]] void run_worker_and_exit(const options& settings)
{
    workload load = workload_of(zookeeper_scheme, settings);
    load.in_flight = settings.concurrency;
    load.keys = settings.keys;
    print_and_exit(run_ours(settings.backend, load, colock::lock_mode::exclusive));
}

/// A new server is slow until it has compiled its frequently used code.
void warm_up(const options& settings)
{
    for (workload load : servers_of(settings)) {
        load.in_flight = 256;
        load.keys = 256;
        load.time *= 10;
        static_cast<void>(run_raw_nodes(load));
    }
}

} // namespace

std::optional<chart> run_zookeeper(const options& settings, report& results)
{
    const auto at = workload_at(zookeeper_scheme, settings.backend);
    if (!at)
        return std::nullopt;
    if (settings.part == worker_part)
        run_worker_and_exit(settings);
    chart drawn;
    const bool with_peers = !settings.peers.empty();
    if (with_peers)
        warm_up(settings);
    if (with_peers && settings.wants("uncontended"))
        drawn = run_uncontended(settings, results);
    // A short run is made for the counted numbers, and leaves long measurements out.
    const bool is_long = settings.seconds >= 0.5;
    if (is_long && settings.wants("contended"))
        run_contended(settings, results);
    if (is_long && settings.wants("processes"))
        run_contending_processes(settings, results);
    if (is_long && settings.wants("fail-over"))
        measure_zookeeper_fail_over(results);
    if (settings.wants("waiters"))
        measure_zookeeper_waiters(*at, settings, results);
    if (is_long && settings.wants("many-waiters"))
        measure_zookeeper_many_waiters(*at, settings, results);
    if (at->host == "127.0.0.1") {
        if (settings.wants("hand-off"))
            measure_zookeeper_round_trips(*at, settings, results);
        if (is_long && settings.wants("resumptions"))
            measure_zookeeper_resumptions(*at, results);
        if (settings.wants("stalls"))
            measure_held_locks(
                "ZooKeeper", [](std::uint16_t port) { return "zookeeper://127.0.0.1:" + std::to_string(port); }, *at,
                settings, results);
    } else if (settings.wants("hand-off") || settings.wants("stalls")) {
        results.fact("left out", "hand-off and stalls, which need a server on 127.0.0.1");
    }
    return drawn;
}

} // namespace bench
