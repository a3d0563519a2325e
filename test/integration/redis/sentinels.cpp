// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

std::string url_of(const std::vector<std::string>& sentinels)
{
    return "redis+sentinel://" + hosts_of(sentinels) + "/main";
}

/// A Sentinel or server that accepts connections and never answers, on a thread of its own.
class mute_server
{
public:
    mute_server()
        : peer_(io_,
              [this](peer::talk& with) -> asio::awaitable<void> {
                  ++accepted_;
                  while (co_await with.hear()) {
                  }
              }),
          thread_([this] { io_.run(); })
    {
    }
    ~mute_server()
    {
        io_.stop();
        thread_.join();
    }
    mute_server(const mute_server&) = delete;
    mute_server& operator=(const mute_server&) = delete;

    [[nodiscard]] std::uint16_t port() const { return peer_.port(); }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
    /// Number of connections that have been accepted.
    [[nodiscard]] int accepted() const noexcept { return accepted_; }

private:
    asio::io_context io_;
    std::atomic<int> accepted_{0};
    peer peer_;
    std::thread thread_;
};

/// Starts searches for the master that do not end by themselves: at a mute Sentinel, and at a mute server that a
/// Sentinel names. Calls `act` with the options of the client and the mute peer.
template <class Act>
void for_each_endless_search(Act act)
{
    for (const bool at_sentinel : {true, false}) {
        BOOST_TEST_CONTEXT("at a Sentinel: " << at_sentinel)
        {
            const mute_server mute;
            const sentinel names(mute.port());
            act(redis::options{.url = url_of({at_sentinel ? mute.address() : names.address()}),
                    .operation_timeout = 30s,
                    .connect_timeout = 1min,
                    .health_interval = 1min},
                mute);
        }
    }
}

/// The first request is lost with the connection. The next follows at once, as in an acquire that is repeated.
asio::awaitable<create_outcome> create_again(driver& test_driver)
{
    co_await test_driver.backend().create(sent_now(driver::exclusive("lost")));
    co_return co_await test_driver.backend().create(sent_now(driver::exclusive("after")));
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
    BOOST_TEST(denied.error->detail.ends_with(client.events->obstacle_detail), client.events->obstacle_detail);
    BOOST_TEST(client.events->obstacle_detail.find("WRONGPASS") != std::string::npos);

    client_side nobody(
        {.url = "redis+sentinel://127.0.0.1:" + std::to_string(free_port()) + "/main", .operation_timeout = 3s});
    const auto absent = nobody.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(absent) == errc::unavailable);
    BOOST_TEST(
        absent.error->detail.find("no Sentinel could name the master main") != std::string::npos, absent.error->detail);
    BOOST_TEST(absent.error->detail.find("refused") != std::string::npos, absent.error->detail);
    BOOST_TEST(absent.error->detail.find("127.0.0.1:") != std::string::npos, absent.error->detail);
}

BOOST_AUTO_TEST_CASE(observer_receives_the_wrong_name_of_a_master)
{
    const sentinel knows_no_master(0);
    client_side client({.url = knows_no_master.url(), .operation_timeout = 3s});
    const auto failed = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(failed) == errc::unavailable);
    const auto& seen = client.events->obstacle_detail;
    BOOST_TEST(seen.find("no Sentinel could name the master main") != std::string::npos, seen);
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
    const deciding_sentinel decides(first.port(), 1500ms);
    client_side client(
        {.url = url_of({"127.0.0.1:" + std::to_string(free_port()), decides.address()}), .operation_timeout = 20s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(first({"EXISTS", "{colock}:k"}) == "1");
    for (int i = 0; i < 200 && !decides.knows(second.port()); ++i)
        client.run_for(100ms);
    first.kill();
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    auto created = start(client.io, client.test_driver.backend().create(sent_now(driver::exclusive("after"))));
    const auto outcome = created.get(client.io);
    BOOST_TEST((outcome.status == create_status::granted), (outcome.error ? outcome.error->detail : "busy"));
    BOOST_TEST(second({"EXISTS", "{colock}:after"}) == "1");
    BOOST_TEST(client.events->warned_of("replicas"));
}

BOOST_AUTO_TEST_CASE(announced_master_ends_an_attempt_at_the_old_one)
{
    redis_server first;
    redis_server second;
    second({"REPLICAOF", "127.0.0.1", std::to_string(first.port())});
    // The client notices after 1 s that the master is silent, and then connects to it again.
    const deciding_sentinel decides(first.port(), 5s);
    client_side client({.url = url_of({decides.address()}),
        .operation_timeout = 2min,
        .connect_timeout = 1h,
        .health_interval = 500ms});
    client.test_driver.grant(driver::exclusive("before"));
    for (int i = 0; i < 200 && !decides.knows(second.port()); ++i)
        client.run_for(100ms);
    // A paused server accepts connections and does not answer. Without the message, the attempt would last for an hour.
    first.pause();
    const auto outcome = start(client.io, create_again(client.test_driver)).get(client.io);
    BOOST_TEST((outcome.status == create_status::granted), (outcome.error ? outcome.error->detail : "busy"));
    BOOST_TEST(second({"EXISTS", "{colock}:after"}) == "1");
    first.resume();
}

BOOST_AUTO_TEST_CASE(new_master_is_found_without_the_right_to_messages)
{
    redis_server first;
    redis_server second;
    second({"REPLICAOF", "127.0.0.1", std::to_string(first.port())});
    const deciding_sentinel decides(first.port(), 1500ms);
    redis_shell(decides.port())({"ACL", "SETUSER", "default", "-subscribe"});
    client_side client({.url = url_of({decides.address()}), .operation_timeout = 2min});
    client.test_driver.grant(driver::exclusive("before"));
    for (int i = 0; i < 200 && !decides.knows(second.port()); ++i)
        client.run_for(100ms);
    first.kill();
    const auto outcome = start(client.io, create_again(client.test_driver)).get(client.io);
    BOOST_TEST((outcome.status == create_status::granted), (outcome.error ? outcome.error->detail : "busy"));
    BOOST_TEST(second({"EXISTS", "{colock}:after"}) == "1");
}

BOOST_AUTO_TEST_CASE(master_named_by_most_sentinels_is_tried_first)
{
    redis_server master;
    // The server could grant the lock, too.
    redis_server stale;
    const sentinel first(stale.port());
    const sentinel second(master.port());
    const sentinel third(master.port());
    // The Sentinel that cannot be reached counts, so all three others have to answer.
    const auto absent = "127.0.0.1:" + std::to_string(free_port());
    client_side client(
        {.url = url_of({first.address(), second.address(), third.address(), absent}), .operation_timeout = 20s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
    BOOST_TEST(stale({"EXISTS", "{colock}:k"}) == "0");
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

    client_side refused({.url = first.url(), .operation_timeout = 5s});
    BOOST_TEST(code_of(refused.test_driver.create(driver::exclusive("k"))) == errc::access_denied);
    const auto address = "127.0.0.1:" + std::to_string(refusing.port());
    BOOST_TEST(refused.events->warned_of(address + " cannot be used"));
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
    // The observer receives the address of the server that was tried last, not those of the Sentinels.
    BOOST_TEST(client.events->obstacle_address == "127.0.0.1:" + std::to_string(other));
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
    const mute_server mute;
    const sentinel wrong(mute.port());
    const sentinel right(master.port());
    client_side client({.url = url_of({mute.address(), wrong.address(), right.address()}),
        .operation_timeout = 20s,
        .connect_timeout = 1s,
        .health_interval = 1min});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(close_ends_the_search_and_the_operation_that_waits_for_it)
{
    for_each_endless_search([](const redis::options& settings, const mute_server& mute) {
        client_side client(settings);
        auto& backend = client.test_driver.backend();
        auto pending = start(client.io, backend.create(sent_now(driver::exclusive("k"))));
        while (mute.accepted() == 0)
            client.run_for(10ms);
        run_coro(client.io, backend.close(0ms));
        BOOST_TEST(code_of(pending.get(client.io)) == errc::unavailable);
        client.io.restart();
        client.io.run_for(20s);
        BOOST_TEST(client.io.stopped());
    });
}

BOOST_AUTO_TEST_CASE(cancelled_acquire_ends_the_search)
{
    for_each_endless_search([](const redis::options& settings, const mute_server& mute) {
        asio::io_context io;
        const locker locks(redis::make_adapter(io.get_executor(), settings));
        asio::cancellation_signal cancel;
        std::optional<error_code> ended;
        locks.async_acquire(
            "k", asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock&) { ended = code; }));
        while (mute.accepted() == 0)
            io.run_for(10ms);
        BOOST_TEST(!ended);
        cancel.emit(asio::cancellation_type::terminal);
        io.run_for(20s);
        BOOST_TEST(io.stopped());
        BOOST_TEST((ended == asio::error::operation_aborted));
    });
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
