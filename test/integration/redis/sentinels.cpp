// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fstream>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_sentinel)

BOOST_AUTO_TEST_CASE(sentinel_failure_is_reported)
{
    redis_server locked({"--requirepass", "right"});
    client_side client({.url = "redis+sentinel://127.0.0.1:" + std::to_string(locked.port()) + "/main",
        .sentinel_password = "wrong-and-secret",
        .operation_timeout = 3s});
    const auto denied = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(denied) == errc::unavailable);
    BOOST_TEST(denied.error->detail.find("WRONGPASS") != std::string::npos, denied.error->detail);
    BOOST_TEST(denied.error->detail.find("secret") == std::string::npos);

    client_side nobody(
        {.url = "redis+sentinel://127.0.0.1:" + std::to_string(free_port()) + "/main", .operation_timeout = 3s});
    const auto absent = nobody.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(absent) == errc::unavailable);
    BOOST_TEST(absent.error->detail.find("refused") != std::string::npos, absent.error->detail);
    BOOST_TEST(absent.error->detail.find("127.0.0.1:") != std::string::npos, absent.error->detail);
}

BOOST_AUTO_TEST_CASE(server_that_is_no_sentinel_is_named)
{
    redis_server plain;
    const auto address = "127.0.0.1:" + std::to_string(plain.port());
    client_side client({.url = "redis+sentinel://" + address + "/main", .operation_timeout = 3s});
    const auto failed = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(failed) == errc::unavailable);
    BOOST_TEST(failed.error->detail.find(address + " is no Sentinel") != std::string::npos, failed.error->detail);
}

BOOST_AUTO_TEST_CASE(new_master_is_found_after_failover)
{
    redis_server first;
    redis_server second;
    second({"REPLICAOF", "127.0.0.1", std::to_string(first.port())});
    const temporary_folder folder;
    const auto port = free_port();
    const auto config = folder / "sentinel.conf";
    {
        std::ofstream out(config);
        out << "port " << port << "\nbind 127.0.0.1\ndir " << folder.path().string()
            << "\nsentinel monitor main 127.0.0.1 " << first.port()
            << " 1\nsentinel down-after-milliseconds main 1500\nsentinel failover-timeout main 1000\n";
    }
    const child_process sentinel(
        {from_environment("COLOCK_REDIS_SERVER", "redis-server"), config, "--sentinel"}, folder / "log");
    client_side client({.url = "redis+sentinel://127.0.0.1:" + std::to_string(free_port()) +
                               ",127.0.0.1:" + std::to_string(port) + "/main",
        .operation_timeout = 20s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(first({"EXISTS", "{colock}:k"}) == "1");
    // The Sentinel can promote only a replica that it knows.
    const auto known = [&] {
        return redis_shell(port)({"SENTINEL", "REPLICAS", "main"}).find(std::to_string(second.port())) !=
               std::string::npos;
    };
    for (int i = 0; i < 200 && !known(); ++i)
        client.run_for(100ms);
    first.kill();
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    auto created = start(client.io, client.test_driver.backend().create(sent_now(driver::exclusive("after"))));
    const auto outcome = created.get(client.io);
    BOOST_TEST((outcome.status == create_status::granted), (outcome.error ? outcome.error->detail : "busy"));
    BOOST_TEST(second({"EXISTS", "{colock}:after"}) == "1");
    BOOST_TEST(client.events->warned_of("replicas"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
