// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "peers.hpp"
#include "zookeeper.hpp"

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

/// One of several processes, as the other libraries' programs.
constexpr std::string_view worker_program = "worker-program";
constexpr std::size_t processes = 4;

std::string url_of(const race& at)
{
    return std::string(zookeeper_scheme) + "://" + at.host + ':' + at.port;
}

/// Those that scripts/servers.sh has started: the names of the variables that say where they are.
constexpr std::array started{"COLOCK_TEST_ZOOKEEPER", "COLOCK_TEST_ZOOKEEPER_2", "COLOCK_TEST_ZOOKEEPER_3"};

double zookeeper_cpu_us(const race& at)
{
    for (const std::string name : started) {
        const char* const url = std::getenv(name.c_str());
        if (url && url == url_of(at))
            return process_cpu_us((name + "_ID").c_str());
    }
    return std::numeric_limits<double>::quiet_NaN();
}

/// The one that was named, and those that were started with it.
std::vector<race> servers_of(const options& settings)
{
    std::vector<race> all{race_of(zookeeper_scheme, settings)};
    const char* const first = std::getenv(started.front());
    if (!first || first != url_of(all.front()))
        return all;
    for (const char* const name : std::span(started).subspan(1))
        if (const char* const url = std::getenv(name)) {
            const auto at = race_at(zookeeper_scheme, url).value();
            all.push_back(all.front());
            all.back().host = at.host;
            all.back().port = at.port;
        }
    return all;
}

/// Each on another server. What one and the same program reaches, and by how much another is slower, differs by a tenth
/// and more between servers that were started alike, presumably by what their compilers made of the first seconds.
void run_rounds_everywhere(
    const std::vector<race>& servers, const race& of, std::vector<rival>& rivals, std::size_t rounds)
{
    if (servers.size() == 1)
        return run_rounds(of, rivals, rounds, zookeeper_cpu_us);
    for (rival& each : rivals)
        each.found.clear();
    for (std::size_t round = 0; round < rounds; ++round) {
        race there = of;
        there.host = servers[round % servers.size()].host;
        there.port = servers[round % servers.size()].port;
        run_round(there, rivals, 1, zookeeper_cpu_us);
    }
}

/// How many times Curator's rate.
struct wanted
{
    std::size_t in_flight;
    double beside_curator;
    double of_raw;
};

const rival* curator_of(const std::vector<rival>& rivals)
{
    const auto found = std::ranges::find(rivals, "Curator", &rival::name);
    return found == rivals.end() ? nullptr : &*found;
}

void compare(const std::vector<rival>& rivals, double least, report& found)
{
    const auto& ours = first(rivals, rival::kind::ours);
    for (const rival& each : rivals) {
        if (each.is != rival::kind::peer)
            continue;
        measurement beside{ours.name + " / " + each.name, ratio(ours, each), "x"};
        if (&each == curator_of(rivals))
            beside.least = least;
        found.add(beside);
    }
}

std::vector<rival> with_programs(
    std::vector<rival> ours, const options& settings, report& found, std::size_t in_each = 1)
{
    for (rival& each : read_programs(settings.peers, found, in_each))
        ours.push_back(std::move(each));
    return ours;
}

chart run_uncontended(const options& settings, report& found)
{
    const auto servers = servers_of(settings);
    race of = servers.front();
    auto rivals = with_programs(
        {
            {"colock", rival::kind::ours,
                [&](const race& now) { return run_ours(url_of(now), now, colock::lock_mode::exclusive); }},
            {"raw", rival::kind::raw, run_raw_nodes},
        },
        settings, found);
    chart drawn{.title = "ZooKeeper: uncontended acquire+release, as multiples of Curator's rate",
        .bars = {},
        .unit = "x",
        .limit = {}};
    for (const wanted& each : {wanted{1, 1.4, 0.0}, wanted{16, 2.0, 0.0}, wanted{256, 2.2, 0.55}}) {
        of.in_flight = each.in_flight;
        // So few that each is there after the warm-up.
        of.keys = each.in_flight * 4;
        // What goes one by one waits for processors to wake up, most of the time: the rate of two seconds is that of
        // the next two only within a quarter.
        of.turns = each.in_flight == 1 ? 4 : 1;
        run_rounds_everywhere(servers, of, rivals, settings.rounds);
        found.begin("ZooKeeper: " + std::to_string(of.in_flight) + " in flight, each on keys of its own, " +
                    of_rounds(settings.rounds, of.turns) + (servers.size() > 1 ? ", each on another server" : ""));
        for (const rival& one : rivals)
            found.add({one.name + ", pairs per second", speed(one), "/s"});
        measurement reached{"colock / raw", ratio(rivals[0], rivals[1]), "x"};
        if (each.of_raw > 0.0)
            reached.least = each.of_raw;
        found.add(reached);
        compare(rivals, each.beside_curator, found);
        for (const rival& one : rivals)
            add_costs(one, found);
        if (const auto* const curator = curator_of(rivals)) {
            found.add({"colock / Curator, were nothing else running", possible(rivals[0]) / possible(*curator), "x"});
            for (const rival& one : rivals)
                drawn.bars.emplace_back(std::to_string(of.in_flight) + " in flight, " + one.name, ratio(one, *curator));
        }
    }
    return drawn;
}

void add_contended(const std::vector<rival>& rivals, double least, report& found)
{
    for (const rival& each : rivals)
        found.add({each.name + ", hand-offs per second", speed(each), "/s"});
    compare(rivals, least, found);
    for (const rival& each : rivals)
        found.add({each.name + ", longest turn", typical(each, [](const rate& round) { return round.longest_turn_ms; }),
            "ms"});
    for (const rival& each : rivals)
        add_costs(each, found);
}

void run_contended(const options& settings, report& found)
{
    race of = race_of(zookeeper_scheme, settings);
    of.in_flight = 64;
    of.keys = 1;
    auto rivals = with_programs(
        {{"colock", rival::kind::ours,
            [&](const race& now) { return run_ours(settings.backend, now, colock::lock_mode::exclusive); }}},
        settings, found);
    run_rounds(of, rivals, settings.rounds, zookeeper_cpu_us);
    found.begin("ZooKeeper: 64 of one process contend for one key, " + of_rounds(settings.rounds));
    add_contended(rivals, 2.0, found);
}

/// Together with the others.
race beginning_soon(race of)
{
    // Each is up by then, and warm; of a short run only counts are of interest.
    const auto ready = of.time * 3 + std::chrono::seconds(1);
    of.begins = std::chrono::time_point_cast<std::chrono::system_clock::duration>(
        std::chrono::ceil<std::chrono::seconds>(std::chrono::system_clock::now() + ready));
    return of;
}

void run_apart(const options& settings, report& found)
{
    race of = race_of(zookeeper_scheme, settings);
    of.in_flight = 1;
    of.keys = 1;
    auto rivals = with_programs({{"colock", rival::kind::ours,
                                    [&](const race& now) {
                                        return run_processes(
                                            own_command(settings.backend, worker_program) + load_of(now), processes);
                                    }}},
        settings, found, processes);
    for (rival& each : rivals)
        each.run = [run = std::move(each.run)](const race& now) { return run(beginning_soon(now)); };
    run_rounds(of, rivals, settings.rounds, zookeeper_cpu_us);
    found.begin("ZooKeeper: " + std::to_string(processes) + " processes contend for one key, one waiter each, " +
                of_rounds(settings.rounds));
    add_contended(rivals, 1.3, found);
}

[[noreturn]] void run_worker_program(const options& settings)
{
    race of = race_of(zookeeper_scheme, settings);
    of.in_flight = settings.concurrency;
    of.keys = settings.keys;
    answer(run_ours(settings.backend, of, colock::lock_mode::exclusive));
}

/// A server that has just started is slower than it will be, until it has compiled what it does most of the time.
void warm_up(const options& settings)
{
    for (race of : servers_of(settings)) {
        of.in_flight = 256;
        of.keys = 256;
        of.time *= 10;
        static_cast<void>(run_raw_nodes(of));
    }
}

} // namespace

std::optional<chart> run_zookeeper(const options& settings, report& found)
{
    const auto at = race_at(zookeeper_scheme, settings.backend);
    if (!at)
        return std::nullopt;
    if (settings.part == worker_program)
        run_worker_program(settings);
    chart drawn;
    const bool races = !settings.peers.empty();
    if (races)
        warm_up(settings);
    if (races && settings.wants("uncontended"))
        drawn = run_uncontended(settings, found);
    // A short run is for counts.
    const bool is_long = settings.seconds >= 0.5;
    if (is_long && settings.wants("contended"))
        run_contended(settings, found);
    if (is_long && settings.wants("processes"))
        run_apart(settings, found);
    if (is_long && settings.wants("fail-over"))
        measure_zookeeper_fail_over(found);
    if (settings.wants("waiters"))
        measure_zookeeper_waiters(*at, settings, found);
    if (is_long && settings.wants("crowds"))
        measure_zookeeper_crowds(*at, settings, found);
    if (at->host == "127.0.0.1") {
        if (settings.wants("hand-off"))
            measure_zookeeper_round_trips(*at, settings, found);
        if (settings.wants("stalls"))
            measure_held_locks(
                "ZooKeeper", [](std::uint16_t port) { return "zookeeper://127.0.0.1:" + std::to_string(port); }, *at,
                settings, found);
    } else if (settings.wants("hand-off") || settings.wants("stalls")) {
        found.fact("left out", "hand-off and stalls, which want a server on 127.0.0.1");
    }
    return drawn;
}

} // namespace bench
