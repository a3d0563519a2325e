// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fail_over.hpp"
#include "redis.hpp"

#include "integration/redis/sentinel.hpp"
#include "integration/redis_cluster/cluster.hpp"

#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {

namespace {

using colock::testing::deciding_sentinel;
using colock::testing::redis_cluster;
using colock::testing::redis_server;
using colock::testing::redis_shell;

constexpr int times = 20;

std::string heading(const std::string& servers)
{
    return servers + ": a master dies, with one holder and " + std::to_string(fail_over::waiters) + " waiters";
}

std::vector<colock::locker> lockers_on(asio::io_context& io, const std::string& url)
{
    std::vector<colock::locker> result;
    for (std::size_t i = 0; i <= fail_over::waiters; ++i)
        result.emplace_back(colock::redis::make_adapter(io.get_executor(), {.url = url}));
    return result;
}

/// One fail-over from a master to its replica, with servers of its own.
void run_with_sentinel(fail_over& measured, asio::io_context& io, bool has_messages)
{
    redis_server master, replica;
    replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    const deciding_sentinel decides(master.port(), 2s);
    if (!has_messages)
        redis_shell(decides.port())({"ACL", "SETUSER", "default", "-subscribe"});
    while (!decides.knows(replica.port()))
        std::this_thread::sleep_for(100ms);
    measured.run(
        lockers_on(io, "redis+sentinel://" + decides.address() + "/main"), [&] { master.kill(); },
        [&] {
            redis_shell shell(decides.port());
            while (shell({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"}).find(std::to_string(replica.port())) ==
                   std::string::npos)
                std::this_thread::sleep_for(1ms);
        });
}

} // namespace

void measure_redis_fail_over(report& results)
{
    asio::io_context io(1);
    {
        redis_cluster servers(2s);
        const auto lockers = lockers_on(io, servers.url());
        fail_over measured(io, 1);
        for (int i = 0; i < times; ++i) {
            const auto master = servers.owner_of("colock:" + std::string(fail_over::key));
            servers.wait_for_replica(master);
            measured.run(
                lockers, [&] { servers.node(master).kill(); },
                [&] {
                    while (!servers.replica_of(master)({"ROLE"}).starts_with("master"))
                        std::this_thread::sleep_for(1ms);
                });
            servers.node(master).start();
            servers.wait_until_ok();
        }
        results.begin(heading("Redis Cluster"));
        measured.add_rows(results, "until its replica is promoted", 500.0, 2000.0);
    }
    // In turn, so that changes of the machine's load affect both.
    fail_over with_messages(io, 1), without(io, 1);
    for (int i = 0; i < times; ++i) {
        run_with_sentinel(with_messages, io, true);
        run_with_sentinel(without, io, false);
    }
    results.begin(heading("Redis with Sentinel"));
    with_messages.add_rows(results, "until the Sentinel names its replica", {}, {});
    results.begin(heading("Redis with a Sentinel that allows no subscription"));
    without.add_rows(results, "until the Sentinel names its replica", {}, {});
}

} // namespace bench
