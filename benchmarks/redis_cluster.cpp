// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "../tools/built_backends.hpp"
#include "peers.hpp"
#include "statistics.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;

namespace bench {
namespace {

/// One server, or the masters of a cluster. The locker is used for all measurements: each node raises the fence counter
/// of a slot once for each connection, which takes a script.
class target
{
public:
    target(const std::string& url, std::vector<workload> servers)
        : servers_(std::move(servers)), locker_(colock::make_adapter(io_.get_executor(), url, tools::built_backends()),
                                            colock::locker_options{.ttl = servers_.front().ttl})
    {
    }

    [[nodiscard]] rate run_pairs(const workload& load)
    {
        io_.restart();
        const auto before = server_cpu_us();
        auto found = run_workers(io_, load, [&](progress& counted, std::size_t number) -> asio::awaitable<void> {
            for (auto key = number; !counted.stopping; key = load.next(key), ++counted.pairs) {
                auto held = co_await locker_.acquire(workload::name(key));
                co_await held.release();
            }
        });
        found.server_us_per_pair = (server_cpu_us() - before) / found.pairs;
        return found;
    }

    [[nodiscard]] double server_cpu_us() const
    {
        double sum = 0.0;
        for (const auto& each : servers_)
            sum += bench::server_cpu_us(each);
        return sum;
    }

private:
    const std::vector<workload> servers_;
    asio::io_context io_{1};
    const colock::locker locker_;
};

/// Returns the masters of the cluster of `scripts/redis_cluster.sh`, which have consecutive ports. Their replicas are
/// not counted.
std::vector<workload> masters_at(const std::string& url, const workload& load)
{
    std::vector<workload> found;
    const auto first = std::stoi(url.substr(url.find(':', url.find("//")) + 1));
    for (int i = 0; i < 3; ++i) {
        found.push_back(load);
        found.back().port = std::to_string(first + i);
    }
    return found;
}

} // namespace

void measure_redis_cluster(const options& settings, const std::string& cluster_url, report& results)
{
    auto load = workload_of(redis_scheme, settings);
    constexpr std::size_t rounds = 5;
    load.time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9 / rounds));
    target one_server(settings.backend, {load}), all_masters(cluster_url, masters_at(cluster_url, load));
    const std::array targets{&one_server, &all_masters};
    load.in_flight = 1000;
    load.keys = 100'000;
    const auto first = all_masters.run_pairs(load);
    results.begin("Redis Cluster: the first use of each slot, 1000 in flight");
    results.add({"client CPU per pair, cluster", first.cpu_us_per_pair, "us"});
    results.add({"server CPU per pair, all masters", first.server_us_per_pair, "us"});
    for (const std::size_t in_flight : {1U, 64U, 1000U}) {
        load.in_flight = in_flight;
        load.keys = in_flight * 100;
        std::vector<double> client_ratios, server_ratios, speeds;
        std::array<std::vector<double>, targets.size()> client, server;
        for (std::size_t round = 0; round < rounds; ++round) {
            std::array<rate, targets.size()> measured;
            for (std::size_t each = 0; each < targets.size(); ++each) {
                measured[each] = targets[each]->run_pairs(load);
                client[each].push_back(measured[each].cpu_us_per_pair);
                server[each].push_back(measured[each].server_us_per_pair);
            }
            client_ratios.push_back(measured[1].cpu_us_per_pair / measured[0].cpu_us_per_pair);
            server_ratios.push_back(measured[1].server_us_per_pair / measured[0].server_us_per_pair);
            speeds.push_back(measured[1].pairs_per_second);
        }
        results.begin("Redis Cluster: " + std::to_string(in_flight) +
                      " in flight on keys of all slots, beside one server, median of " + std::to_string(rounds) +
                      " rounds");
        results.add({"pairs per second", median(speeds), "/s"});
        results.add({"client CPU per pair, one server", median(client[0]), "us"});
        results.add({"client CPU per pair, cluster", median(client[1]), "us"});
        results.add({"client CPU, cluster / one server", median(client_ratios), "x",
            in_flight == 1 ? std::nullopt : std::optional<double>(1.3)});
        results.add({"server CPU per pair, one server", median(server[0]), "us"});
        results.add({"server CPU per pair, all masters", median(server[1]), "us"});
        results.add({"server CPU, all masters / one server", median(server_ratios), "x",
            in_flight == 1000 ? std::optional<double>(2.2) : std::nullopt});
    }
}

void measure_redis_cluster_peers(const options& settings, const std::string& cluster_url, report& results)
{
    auto load = workload_of(redis_scheme, settings);
    const auto masters = masters_at(cluster_url, load);
    target cluster(cluster_url, masters);
    load.port = masters.front().port;
    std::vector<candidate> candidates{
        {"colock", candidate::kind::ours, [&](const workload& slice) { return cluster.run_pairs(slice); }}};
    for (candidate& each : read_programs(settings.peers, results))
        candidates.push_back(std::move(each));
    for (const std::size_t in_flight : {64U, 1000U}) {
        load.in_flight = in_flight;
        load.keys = in_flight * 100;
        run_rounds(load, candidates, settings.rounds, [&](const workload&) { return cluster.server_cpu_us(); });
        results.begin("Redis Cluster: " + std::to_string(in_flight) +
                      " in flight on keys of all slots, beside other libraries, " + describe_rounds(settings.rounds));
        for (const candidate& each : candidates)
            results.add({each.name + ", pairs per second", speed(each), "/s"});
        if (const auto* const best = best_peer(candidates)) {
            measurement comparison{"colock / " + best->name + ", the best peer", ratio(candidates.front(), *best), "x"};
            if (in_flight == 1000)
                comparison.lower_limit = 3.0;
            results.add(comparison);
        }
        for (const candidate& each : candidates)
            add_costs(each, results);
        // The slowest of client and masters limits the rate.
        const auto separate_rate = [&](const candidate& program) {
            return median_over_rounds(program, [&](const rate& round) {
                const auto count = static_cast<double>(masters.size());
                return 1e6 / std::max(round.cpu_us_per_pair, round.server_us_per_pair / count);
            });
        };
        if (const auto* const best = best_peer(candidates))
            results.add({"colock / " + best->name + ", client and masters with a processor each",
                separate_rate(candidates.front()) / separate_rate(*best), "x"});
    }
}

} // namespace bench
