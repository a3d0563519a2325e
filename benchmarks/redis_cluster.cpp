// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "../tools/built_backends.hpp"
#include "statistics.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

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

/// One server, or the masters of a cluster.
struct target
{
    std::string url;
    std::vector<workload> servers{};

    [[nodiscard]] double server_cpu_us() const
    {
        double sum = 0.0;
        for (const auto& each : servers)
            sum += bench::server_cpu_us(each);
        return sum;
    }
};

/// Returns the cluster of `scripts/redis_cluster.sh`, whose masters have consecutive ports. The replicas have as much
/// to do as those of one server would have.
target cluster_at(const std::string& url, const workload& load)
{
    target found{.url = url};
    const auto first = std::stoi(url.substr(url.find(':', url.find("//")) + 1));
    for (int i = 0; i < 3; ++i) {
        found.servers.push_back(load);
        found.servers.back().port = std::to_string(first + i);
    }
    return found;
}

rate run_pairs(const target& at, const workload& load)
{
    asio::io_context io{1};
    const colock::locker shared(colock::make_adapter(io.get_executor(), at.url, tools::built_backends()),
        colock::locker_options{.ttl = load.ttl});
    const auto before = at.server_cpu_us();
    auto found = run_workers(io, load, [&](progress& counted, std::size_t number) -> asio::awaitable<void> {
        const auto locker = shared;
        for (auto key = number; !counted.stopping; key = load.next(key), ++counted.pairs) {
            auto held = co_await locker.acquire(workload::name(key));
            co_await held.release();
        }
    });
    found.server_us_per_pair = (at.server_cpu_us() - before) / found.pairs;
    return found;
}

} // namespace

void measure_redis_cluster(const options& settings, const std::string& cluster_url, report& results)
{
    auto load = workload_of(redis_scheme, settings);
    constexpr std::size_t rounds = 5;
    load.time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9 / rounds));
    const std::array targets{target{settings.backend, {load}}, cluster_at(cluster_url, load)};
    for (const std::size_t in_flight : {1U, 64U, 1000U}) {
        load.in_flight = in_flight;
        load.keys = in_flight * 100;
        std::vector<double> client_ratios, server_ratios, speeds;
        std::array<std::vector<double>, targets.size()> client, server;
        for (std::size_t round = 0; round < rounds; ++round) {
            std::array<rate, targets.size()> measured;
            for (std::size_t each = 0; each < targets.size(); ++each) {
                measured[each] = run_pairs(targets[each], load);
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

} // namespace bench
