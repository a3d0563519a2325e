// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "served.hpp"
#include "support/localhost.hpp"
#include "support/print.hpp"

#include <colock/connect.hpp>
#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <iterator>
#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(a_lock_is_one_string_with_token_owner_and_ttl)
{
    served f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"me", "here", "why", "g1"});
    const plain_claim_ptr claim = new plain_claim({.key = "k", .ttl = 20s, .owner = owner});
    const auto fence = f.test_driver->grant(claim);

    const auto value = f.raw({"GET", "{colock}:k"});
    BOOST_TEST(value.starts_with(claim->token().hex()));
    const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
    BOOST_TEST(f.raw({"GET", "{colock}#fence"}) == std::to_string(fence));
    // The fence is above the server's clock in microseconds at the time of the connection.
    const auto seconds = std::stoull(f.raw({"TIME"}));
    BOOST_TEST(fence / 1'000'000 + 30 > seconds);
    BOOST_TEST(fence / 1'000'000 <= seconds);

    const auto held = f.test_driver->inspect("k");
    BOOST_TEST_REQUIRE(held.size() == 1u);
    BOOST_TEST(held[0].key == "k");
    BOOST_TEST(held[0].owner == "me");
    BOOST_TEST(held[0].host == "here");
    BOOST_TEST(held[0].comment == "why");
    BOOST_TEST(held[0].group == "g1");
    BOOST_TEST(held[0].created.has_value());
    BOOST_TEST(held[0].remaining.has_value());

    f.test_driver->release_held(claim);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(busy_lock_reports_remaining_time_and_owner)
{
    served f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"the holder", "its host", "", ""});
    const plain_claim_ptr holder = new plain_claim({.key = "k", .ttl = 20s, .owner = owner});
    f.test_driver->grant(holder);
    const auto other = driver::exclusive("k");
    const auto outcome = f.test_driver->check_refused(other);
    BOOST_TEST(outcome.holder == "the holder");
    BOOST_TEST(outcome.holder_host == "its host");
    BOOST_TEST((outcome.retry_after > 15s && outcome.retry_after <= 20s + 1ms));
    const auto again = f.test_driver->check_refused(other);
    BOOST_TEST((again.retry_after > 15s && again.retry_after <= 20s + 1ms));
}

BOOST_AUTO_TEST_CASE(no_thread_is_started_for_a_numeric_address)
{
    const auto threads = [] {
        return std::distance(
            std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
    };
    served f;
    const auto before = threads();
    const auto claim = driver::exclusive("k");
    f.test_driver->grant(claim);
    BOOST_TEST(threads() == before);
    f.test_driver->release_held(claim);
}

BOOST_AUTO_TEST_CASE(a_name_is_resolved, *boost::unit_test::precondition(knows_localhost))
{
    served f;
    f.test_driver.emplace(f.io,
        redis::make_adapter(f.io.get_executor(), {.url = "redis://localhost:" + std::to_string(f.server.port())}));
    f.test_driver->grant(driver::exclusive("k"));
    driver other(
        f.io, redis::make_adapter(f.io.get_executor(),
                  {.url = "redis://no-such-host.invalid:6379", .operation_timeout = 2s, .connect_timeout = 200ms}));
    const auto refused = other.create(driver::exclusive("k"));
    BOOST_TEST((refused.status == create_status::failed));
    BOOST_TEST_REQUIRE(refused.error);
    BOOST_TEST((refused.error->code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(url_options_take_effect)
{
    redis_server server;
    asio::io_context io;
    const locker locks(make_adapter(io.get_executor(),
        server.url() + "/3?prefix=app:&layout=plain&operation_timeout=300ms&health_interval=1m", {redis::by_url}));
    auto held = run_coro(io, locks.acquire("k"));
    BOOST_TEST(server({"EXISTS", "app:k"}) == "0");
    server({"SELECT", "3"});
    BOOST_TEST(server({"GET", "app:k"}).size() == 32U);
    run_coro(io, held.release(on_failure::raise));
    server.pause();
    const auto start = std::chrono::steady_clock::now();
    BOOST_CHECK_THROW(static_cast<void>(run_coro(io, locks.try_acquire("k"))), error);
    BOOST_TEST((std::chrono::steady_clock::now() - start < 3s));
    server.resume();
    run_coro(io, locks.shutdown(5s));
}

BOOST_AUTO_TEST_CASE(a_lost_fence_counter_starts_above_the_clock_again)
{
    served f;
    const auto before = driver::exclusive("before");
    const auto old_fence = f.test_driver->grant(before);
    f.raw({"DEL", "{colock}#fence"});
    const auto claim = driver::exclusive("k");
    BOOST_TEST(f.test_driver->grant(claim) > old_fence);
}

BOOST_AUTO_TEST_CASE(a_used_up_fence_counter_is_reported_with_its_repair_and_works_once_it_was_deleted)
{
    for (const char* const counter : {"9223372036854775807", "9223372036854775000", "9223372036854775808"}) {
        for (const bool is_connected : {false, true}) {
            BOOST_TEST_CONTEXT(counter << (is_connected ? ", while connected" : ""))
            {
                served f;
                const auto held = driver::exclusive("held"), next = driver::exclusive("held");
                const auto moving = driver::exclusive("moving"), adopted = driver::exclusive("moving");
                if (is_connected) {
                    f.test_driver->grant(held);
                    f.test_driver->grant(moving);
                }
                f.raw({"SET", "{colock}#fence", counter});
                const auto check = [&](const create_outcome& outcome, errc code = errc::misconfigured_backend) {
                    BOOST_TEST(code_of(outcome) == code);
                    BOOST_TEST(
                        outcome.error->detail.find("{colock}#fence") != std::string::npos, outcome.error->detail);
                    BOOST_TEST(outcome.error->detail.find("delete") != std::string::npos);
                };
                const auto claim = driver::exclusive("k");
                check(f.test_driver->create(claim));
                check(f.test_driver->create(claim));
                check(f.test_driver->create(driver::shared("k")));
                check(f.test_driver->create(driver::shared("k", 2)));
                check(f.test_driver->create_all({driver::exclusive("k"), driver::exclusive("l")}).refusal);
                BOOST_TEST(f.raw({"EXISTS", "{colock}:k", "{colock}:l"}) == "0");
                if (is_connected) {
                    check(f.test_driver->hand_over(held, next).created);
                    const auto outcome = f.test_driver->adopt(f.test_driver->export_ticket(moving), adopted);
                    check(outcome, outcome.error->code);
                }
                const auto left = f.raw({"GET", "{colock}#fence"});
                BOOST_TEST((left == counter || left < "9223372036854776000"), left);

                f.raw({"DEL", "{colock}#fence"});
                const auto fence = f.test_driver->grant(driver::exclusive("k"));
                BOOST_TEST(fence < 10'000'000'000'000'000u);
                BOOST_TEST(f.test_driver->grant(driver::exclusive("l")) > fence);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(fences_after_failover_are_above_all_earlier_ones)
{
    redis_server server;
    client_side client({.url = server.url()});
    client.test_driver.grant(driver::exclusive("first"));
    // Simulates a failover from a master whose clock was an hour ahead of the clock of its successor.
    const auto ahead = std::stoull(server({"GET", "{colock}#fence"})) + 3'600'000'000ULL;
    server({"SET", "{colock}#fence", std::to_string(ahead)});
    const auto before = client.test_driver.grant(driver::exclusive("before"));
    BOOST_TEST(before > ahead);
    server({"SET", "{colock}#fence", "1700000000000000"});
    server({"CLIENT", "KILL", "TYPE", "normal"});
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    BOOST_TEST(client.test_driver.grant(driver::exclusive("after")) > before);
}

BOOST_AUTO_TEST_CASE(no_ttl_means_until_released)
{
    served f;
    const auto claim = driver::exclusive("k", 0ms);
    f.test_driver->grant(claim);
    BOOST_TEST(f.raw({"PTTL", "{colock}:k"}) == "-1");
    BOOST_TEST((f.test_driver->check_refused(driver::exclusive("k")).retry_after == 0ns));
    BOOST_TEST(!f.test_driver->inspect("k").at(0).remaining.has_value());
    f.test_driver->release_held(claim);

    const auto reader = driver::shared("s", 0, 0ms);
    f.test_driver->grant(reader);
    BOOST_TEST(f.raw({"PTTL", "{colock}:s"}) == "-1");
    f.test_driver->grant(driver::shared("s", 0, 10s));
    BOOST_TEST(f.raw({"PTTL", "{colock}:s"}) == "-1");
    f.test_driver->release_held(reader);
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:s"})) > 5'000);
}

BOOST_AUTO_TEST_CASE(a_lock_is_handed_over_in_one_step)
{
    served f;
    const auto held = driver::exclusive("k", 60s);
    const auto next = driver::exclusive("k", 600s);
    const auto first = f.test_driver->grant(held);
    f.test_driver->check_refused(next);
    const auto outcome = f.test_driver->hand_over(held, next);
    // The key has the ttl of the next claim.
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 60'000);
    BOOST_TEST((outcome.released.status == release_status::released));
    BOOST_TEST_REQUIRE((outcome.created.status == create_status::granted));
    BOOST_TEST(outcome.created.fence > first);
    f.test_driver->check_held(next);
    f.test_driver->check_not_held(held);

    const auto for_ever = driver::exclusive("k", 0ms);
    BOOST_TEST((f.test_driver->hand_over(next, for_ever).created.status == create_status::granted));
    BOOST_TEST(f.raw({"PTTL", "{colock}:k"}) == "-1");
    const auto shorter = driver::exclusive("k", 30s);
    BOOST_TEST((f.test_driver->hand_over(for_ever, shorter).created.status == create_status::granted));
    const auto left = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((left > 0 && left <= 30'000));

    const auto third = driver::exclusive("k");
    const auto not_ours = f.test_driver->hand_over(held, third);
    BOOST_TEST((not_ours.released.status == release_status::not_held));
    BOOST_TEST((not_ours.created.status == create_status::busy));
}

BOOST_AUTO_TEST_CASE(prefix_with_a_bracket_is_no_pattern)
{
    served f;
    f.raw({"SET", "{colock}:odd[1", stored_holder('f')});
    for (const auto* key : {"odd[1]", "odd1", "other"})
        f.test_driver->grant(driver::exclusive(key));
    BOOST_TEST(f.test_driver->list({.key_prefix = "odd[1"}).size() == 2u);
}

BOOST_AUTO_TEST_CASE(forgotten_scripts_are_sent_again_on_every_path)
{
    served f;
    const auto flush = [&] { BOOST_TEST(f.raw({"SCRIPT", "FLUSH"}) == "OK"); };
    const auto claim = driver::exclusive("k");
    const auto other = driver::exclusive("k");
    flush();
    f.test_driver->grant(claim);
    flush();
    f.test_driver->check_refused(other);
    flush();
    BOOST_TEST((f.test_driver->extend(claim, 10s).status == extend_status::extended));
    flush();
    f.test_driver->check_held(claim);
    flush();
    BOOST_TEST((f.test_driver->hand_over(claim, other).created.status == create_status::granted));
    flush();
    f.test_driver->release_held(other);
    flush();
    const auto reader = driver::shared("s", 3, 60s);
    f.test_driver->grant(reader);
    flush();
    BOOST_TEST((f.test_driver->extend(reader, 10s).status == extend_status::extended));
    flush();
    f.test_driver->check_held(reader);
    flush();
    BOOST_TEST(f.test_driver->inspect("s").size() == 1u);
    flush();
    BOOST_TEST(f.test_driver->list().size() == 1u);
    flush();
    const auto writer = driver::exclusive("s");
    f.test_driver->check_refused(writer);
    flush();
    BOOST_TEST((f.test_driver->abandon(writer).status == release_status::not_held));
    flush();
    f.test_driver->release_held(reader);
    flush();
    BOOST_TEST(f.test_driver->purge().empty());
    flush();
    BOOST_TEST(f.test_driver->break_key("s").empty());
    f.raw({"FLUSHALL"});
    flush();
    f.test_driver->grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(run_returns_when_nothing_is_left_to_do)
{
    served f({.idle_timeout = 0ms});
    const auto claim = driver::exclusive("k");
    f.test_driver->grant(claim);
    f.test_driver->release_held(claim);
    const auto begin = std::chrono::steady_clock::now();
    f.io.restart();
    f.io.run();
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 5s));
    // The adapter reconnects when a connection is needed.
    f.io.restart();
    f.test_driver->grant(claim);
    f.test_driver->release_held(claim);
    BOOST_TEST(f.test_driver->backend().reconnects() == 0u);
}

BOOST_AUTO_TEST_CASE(a_closed_adapter_stays_usable)
{
    served f({.idle_timeout = std::chrono::milliseconds::max()});
    const auto claim = driver::exclusive("k");
    f.test_driver->grant(claim);
    run_coro(f.io, f.test_driver->backend().close(5s));
    f.io.restart();
    f.io.run();
    f.io.restart();
    f.test_driver->release_held(claim);
}

BOOST_AUTO_TEST_CASE(the_last_owner_closes_the_connection)
{
    served f({.idle_timeout = std::chrono::milliseconds::max()});
    f.test_driver->grant(driver::exclusive("k"));
    f.test_driver.reset();
    f.io.restart();
    const auto begin = std::chrono::steady_clock::now();
    f.io.run();
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 5s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
