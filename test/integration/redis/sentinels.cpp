// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

/// A Sentinel process that monitors the server at `master_port` under the name "main".
class sentinel_process
{
public:
    explicit sentinel_process(std::uint16_t master_port)
    {
        const auto config = folder_ / "sentinel.conf";
        std::ofstream(config) << "port " << port_ << "\nbind 127.0.0.1\ndir " << folder_.path().string()
                              << "\nsentinel monitor main 127.0.0.1 " << master_port << " 2\n";
        process_.emplace(
            std::vector<std::string>{from_environment("COLOCK_REDIS_SERVER", "redis-server"), config, "--sentinel"},
            folder_ / "log");
    }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] bool is_ready() const
    {
        try {
            return redis_shell(port_)({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"}).find("127.0.0.1") !=
                   std::string::npos;
        } catch (const std::runtime_error&) {
            // The process does not listen yet.
            return false;
        }
    }

private:
    const temporary_folder folder_{};
    const std::uint16_t port_ = free_port();
    std::optional<child_process> process_{};
};

std::string url_of(const std::vector<std::string>& sentinels)
{
    std::string result = "redis+sentinel://";
    for (const auto& each : sentinels)
        result += (result.ends_with('/') ? "" : ",") + each;
    return result + "/main";
}

/// Service of a server that accepts connections and never answers.
peer::service mute_service()
{
    return [](peer::talk& with) -> asio::awaitable<void> {
        while (co_await with.hear()) {
        }
    };
}

} // namespace

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

BOOST_AUTO_TEST_CASE(master_named_by_most_sentinels_is_tried_first)
{
    redis_server master;
    const sentinel_process stale(free_port());
    const sentinel_process second(master.port());
    const sentinel_process third(master.port());
    client_side client({.url = url_of({stale.address(), second.address(), third.address()}),
        .operation_timeout = 10s,
        .health_interval = 1min});
    for (int i = 0; i < 200 && !(stale.is_ready() && second.is_ready() && third.is_ready()); ++i)
        client.run_for(50ms);
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(address_named_by_one_sentinel_is_tried_after_the_others)
{
    redis_server master;
    const auto dead = free_port();
    const sentinel first(dead);
    const sentinel second(dead);
    const sentinel third(master.port());
    client_side client({.url = url_of({first.address(), second.address(), third.address()}), .operation_timeout = 5s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(server_that_refuses_the_user_is_left_for_the_next_address)
{
    redis_server master;
    redis_server refusing;
    refusing({"CONFIG", "SET", "requirepass", "other"});
    const sentinel first(refusing.port());
    const sentinel second(refusing.port());
    const sentinel third(master.port());
    client_side client({.url = url_of({first.address(), second.address(), third.address()}), .operation_timeout = 5s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(each_tried_address_is_reported)
{
    const auto one = free_port(), other = free_port();
    const sentinel first(one);
    const sentinel second(other);
    client_side client({.url = url_of({first.address(), second.address()}), .operation_timeout = 3s});
    const auto failed = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(failed) == errc::unavailable);
    for (const auto port : {one, other})
        BOOST_TEST(failed.error->detail.find(std::to_string(port)) != std::string::npos, failed.error->detail);
}

BOOST_AUTO_TEST_CASE(replica_named_by_most_sentinels_is_left_for_the_master)
{
    redis_server master;
    redis_server replica;
    replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    const sentinel first(replica.port());
    const sentinel second(replica.port());
    const sentinel third(master.port());
    client_side client({.url = url_of({first.address(), second.address(), third.address()}), .operation_timeout = 5s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(mute_sentinel_and_mute_server_are_left_after_connect_timeout)
{
    redis_server master;
    asio::io_context io;
    peer mute(io, mute_service());
    const sentinel wrong(mute.port());
    const sentinel right(master.port());
    client_side client({.url = url_of({"127.0.0.1:" + std::to_string(mute.port()), wrong.address(), right.address()}),
        .operation_timeout = 20s,
        .connect_timeout = 1s,
        .health_interval = 1min});
    std::jthread run([&] { io.run(); });
    // Ends the thread before it is joined, also if the grant fails.
    const std::unique_ptr<asio::io_context, decltype([](asio::io_context* running) { running->stop(); })> stops(&io);
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(each_cause_is_reported_once_and_named_by_its_sentinel)
{
    redis_server plain;
    const auto no_sentinel = "127.0.0.1:" + std::to_string(plain.port());
    const auto closed = "127.0.0.1:" + std::to_string(free_port());
    client_side client({.url = url_of({no_sentinel, closed}), .operation_timeout = 3s});
    const auto failed = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(failed) == errc::unavailable);
    const auto& text = failed.error->detail;
    for (const auto& each : {no_sentinel, closed}) {
        BOOST_TEST(text.find(each) != std::string::npos, text);
        BOOST_TEST(text.find(each) == text.rfind(each), text);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
