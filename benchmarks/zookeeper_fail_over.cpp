// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fail_over.hpp"
#include "zookeeper.hpp"

#include "integration/zookeeper/ensemble.hpp"

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace bench {

void measure_zookeeper_fail_over(report& results)
{
    colock::testing::zookeeper_ensemble servers;
    boost::asio::io_context io(1);
    std::vector<colock::locker> lockers;
    for (std::size_t i = 0; i <= fail_over::waiters; ++i)
        lockers.emplace_back(colock::zookeeper::make_adapter(
            io.get_executor(), {.url = servers.url(i % servers.size), .server_tick = 500ms}));
    // A locker that was busy twice has set its watch.
    fail_over measured(io, 2);
    for (int i = 0; i < 9; ++i) {
        const auto leader = servers.leader();
        // leader() returns as soon as there is a new leader.
        measured.run(lockers, [&] { servers[leader].kill(); }, [&] { static_cast<void>(servers.leader()); });
        servers.restore();
    }
    results.begin("ZooKeeper: the leader of three servers dies, with one holder and " +
                  std::to_string(fail_over::waiters) + " waiters");
    measured.add_rows(results, "until another answers as leader", 1000.0, 1000.0);
}

} // namespace bench
