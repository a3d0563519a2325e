// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "batch_fixture.hpp"
#include "support/driver.hpp"
#include "support/process.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/testing/remote_contract.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(mongo_batches, batch_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(release_of_a_lost_lock_fails_alone_in_its_batch)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        auto held = take_all({.ttl = 1min, .mode = mode});
        BOOST_TEST(run(theirs.break_lock("2")).size() == 1U);
        static_cast<void>(ask(R"({"delete":"locks","deletes":[{"q":{"_id":"3"},"limit":1}]})"));
        const int before = link.cuts();
        link.cut_at_bytes(statements_start, loss::delayed_reply);
        auto releases = start_releases(held);
        until([&] { return link.cuts() > before; });
        link.deliver_replies();
        for (std::size_t i = 0; i < key_count; ++i) {
            if (i == 2 || i == 3)
                COLOCK_THROWS(release_error, errc::not_held, releases[i].get(io));
            else
                releases[i].get(io);
        }
        check_all_are_free();
    }
}

BOOST_AUTO_TEST_CASE(lost_request_or_reply_of_a_batch_leaves_every_outcome_unknown)
{
    int cuts = 0;
    for (const auto what : {loss::request, loss::reply}) {
        link.cut_at_bytes(statements_start, what);
        BOOST_TEST(count_unknown(start_acquires({.retry = retry_policy::never()})) >= 2U);
        BOOST_TEST(link.cuts() == ++cuts);
        check_all_are_free();
    }
}

BOOST_AUTO_TEST_CASE(shared_grant_is_settled_if_its_document_cannot_be_read)
{
    for (const auto what : {loss::request, loss::reply}) {
        link.cut_at_bytes(find_start, what);
        BOOST_TEST(count_unknown(start_acquires({.mode = lock_mode::shared, .retry = retry_policy::never()})) >= 2U);
        check_all_are_free();
    }
}

/// A release reads the document only if another claim of this process waits, to see whether other processes wait, too.
BOOST_AUTO_TEST_CASE(release_succeeds_if_its_document_cannot_be_read)
{
    auto held = take_all({.mode = lock_mode::shared});
    std::vector<running<lock>> waiting;
    for (const auto& key : keys())
        waiting.push_back(start(io, ours.acquire(key, {.retry = retry_policy::fixed(1h)})));
    // Some claims may be refused twice before others are refused once.
    until([&] {
        return ours.stats().busy >= key_count && std::ranges::all_of(keys(), [&](const std::string& key) {
            return lock_document(key).find("\"wb\"") != std::string::npos;
        });
    });
    link.cut_at_bytes(find_start, loss::reply);
    release_all(held);
    BOOST_TEST(link.cuts() == 1);
    for (auto& each : waiting)
        held.push_back(each.get(io));
    release_all(held);
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(a_lost_reply_to_releases_is_settled)
{
    auto held = take_all();
    link.cut_at_bytes(statements_start, loss::reply);
    std::size_t failed = 0;
    for (auto& each : start_releases(held)) {
        try {
            each.get(io);
        } catch (const release_error&) {
            ++failed;
        }
    }
    BOOST_TEST(link.cuts() == 1);
    BOOST_TEST(failed >= 2U);
    until([&] { return ours.stats().settling == 0; });
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(busy_key_does_not_delay_the_rest_of_a_batch)
{
    auto taken = run(theirs.acquire("2"));
    std::vector<running<std::optional<lock>>> asked;
    for (const auto& key : keys())
        asked.push_back(start(io, ours.try_acquire(key)));
    std::vector<lock> held;
    for (std::size_t i = 0; i < key_count; ++i) {
        auto got = asked[i].get(io);
        BOOST_TEST(got.has_value() == (i != 2));
        if (got)
            held.push_back(std::move(*got));
    }
    release_all(held);
    // A claim that waits marks the document, and is woken.
    const auto busy = ours.stats().busy;
    auto waiting = start_acquires({.retry = retry_policy::fixed(1h)});
    until([&] { return ours.stats().busy > busy; });
    BOOST_TEST(lock_document("2").find("\"wb\"") != std::string::npos);
    until([&] {
        return std::ranges::count_if(waiting, [](const auto& each) { return each.done(); }) ==
               static_cast<std::ptrdiff_t>(key_count - 1);
    });
    run(taken.release(on_failure::raise));
    std::vector<lock> all;
    for (auto& each : waiting)
        all.push_back(each.get(io));
    BOOST_TEST(all[2].fence() > taken.fence());
    release_all(all);
}

BOOST_AUTO_TEST_CASE(each_new_key_is_granted_to_one_of_many_lockers)
{
    std::vector<locker> all;
    for (int i = 0; i < 6; ++i)
        all.push_back(add());
    for (const auto& each : all)
        run(run(each.acquire("warm")).release());
    for (int round = 0; round < 10; ++round) {
        std::vector<running<std::optional<lock>>> asked;
        for (const auto& each : all)
            for (const auto& key : keys())
                asked.push_back(start(io, each.try_acquire(std::to_string(round) + '.' + key)));
        std::vector<lock> held;
        for (auto& each : asked) {
            if (auto got = each.get(io))
                held.push_back(std::move(*got));
        }
        BOOST_TEST(held.size() == key_count);
        release_all(held);
    }
}

BOOST_AUTO_TEST_CASE(cancelled_acquire_in_a_batch_holds_nothing)
{
    link.cut_at_bytes(statements_start, loss::delayed_reply);
    std::vector<asio::cancellation_signal> signals(key_count);
    std::size_t ended = 0;
    std::size_t granted = 0;
    for (std::size_t i = 0; i < key_count; ++i)
        asio::co_spawn(io, ours.acquire(std::to_string(i)),
            asio::bind_cancellation_slot(signals[i].slot(), [&](const std::exception_ptr& failed, lock) {
                ++ended;
                granted += failed ? 0 : 1;
            }));
    until([&] { return link.cuts() == 1; });
    for (auto& each : signals)
        each.emit(asio::cancellation_type::terminal);
    link.deliver_replies();
    until([&] { return ended == key_count && ours.stats().settling == 0; });
    BOOST_TEST(granted < key_count);
    until([&] { return holders_at(server->port()).empty(); });
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(operation_of_a_batch_ends_at_its_timeout)
{
    const auto ours_with_timeout = add_with_timeout(1s);
    link.cut_at_bytes(statements_start, loss::delayed_reply);
    std::vector<running<lock>> asked;
    for (const auto& key : keys())
        asked.push_back(start(io, ours_with_timeout.acquire(key, {.retry = retry_policy::never()})));
    until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
    link.deliver_replies();
    BOOST_TEST(count_unknown(std::move(asked), ours_with_timeout) >= 2U);
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(batch_whose_operations_have_timed_out_frees_its_connection)
{
    const auto ours_with_timeout = add_with_timeout(1s, 1);
    link.cut_at_bytes(statements_start, loss::delayed_reply);
    std::vector<running<lock>> asked;
    for (const auto& key : keys())
        asked.push_back(start(io, ours_with_timeout.acquire(key, {.retry = retry_policy::never()})));
    for (auto& each : asked)
        BOOST_CHECK_THROW(static_cast<void>(each.get(io)), create_error);
    BOOST_TEST(link.cuts() == 1);
    run(run(ours_with_timeout.acquire("warm")).release(on_failure::raise));
    until([&] { return ours_with_timeout.stats().settling == 0; });
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(batch_that_arrives_after_its_abandon_leaves_nothing)
{
    link.hold();
    auto asked = start_acquires({.ttl = 1h, .retry = retry_policy::never()});
    for (const auto& key : keys())
        asked.push_back(
            start(io, ours.acquire("s" + key, {.ttl = 1h, .mode = lock_mode::shared, .retry = retry_policy::never()})));
    until([&] { return link.keeps("updates"); });
    link.hang_up();
    BOOST_TEST(count_unknown(std::move(asked)) >= 2U);
    link.deliver();
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(late_batch_leaves_nothing)
{
    const auto ours_with_timeout = add_with_timeout(500ms);
    const driver by(io, last_adapter);
    link.hold();
    std::vector<running<create_outcome>> asked;
    for (const auto& key : keys()) {
        asked.push_back(start(io, by.backend().create(sent_now(driver::exclusive(key)))));
        asked.push_back(start(io, by.backend().create(sent_now(driver::shared(key)))));
    }
    until([&] { return link.keeps("updates"); });
    for (auto& each : asked)
        BOOST_TEST((each.get(io).status == create_status::failed));
    contract::pass_real_time(io, 2s);
    link.deliver();
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(
    unsent_batch_is_sent_again, *boost::unit_test::precondition(not_ferretdb("process id in its hello")))
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        // All connections are cut.
        link.refuse(true);
        link.refuse(false);
        run(run(ours.acquire("warm")).release(on_failure::raise));
        const int before = link.cuts();
        // The request that is lost is the handshake of the next connection.
        link.cut_at_any({"hello", "isMaster"}, loss::request);
        // One command can contain at most 64 operations.
        constexpr std::size_t many = 80;
        std::vector<running<lock>> asked;
        for (std::size_t i = 0; i < many; ++i)
            asked.push_back(start(io, ours.acquire(std::to_string(i), {.mode = mode, .retry = retry_policy::never()})));
        // Commands on other connections may be lost together with their connections.
        BOOST_TEST(count_unknown(std::move(asked)) <= many / 2);
        BOOST_TEST(link.cuts() == before + 1);
        check_all_are_free();
    }
}

BOOST_AUTO_TEST_CASE(claims_of_one_key_in_a_batch_are_granted_in_turn)
{
    const driver by(io, last_adapter);
    const auto make = [](const std::string& key, lock_mode mode) {
        return mode == lock_mode::exclusive ? driver::exclusive(key) : driver::shared(key, 1);
    };
    for (const auto first : {lock_mode::exclusive, lock_mode::shared}) {
        for (const auto second : {lock_mode::exclusive, lock_mode::shared}) {
            std::vector<plain_claim_ptr> claims;
            std::vector<running<std::uint64_t>> asked;
            for (const auto& key : keys()) {
                for (const auto mode : {first, second})
                    asked.push_back(by.start_acquire(claims.emplace_back(make(key, mode))));
            }
            const auto is_done = [&](std::size_t which) { return asked[which].done(); };
            until([&] {
                for (std::size_t i = 0; i < asked.size(); i += 2) {
                    if (!is_done(i) && !is_done(i + 1))
                        return false;
                }
                return true;
            });
            for (std::size_t i = 0; i < asked.size(); i += 2) {
                BOOST_TEST(is_done(i) != is_done(i + 1));
                const auto holder = is_done(i) ? i : i + 1;
                const auto waiter = is_done(i) ? i + 1 : i;
                const auto fence = asked[holder].get(io);
                by.release_held(claims[holder]);
                BOOST_TEST(asked[waiter].get(io) > fence);
                by.release_held(claims[waiter]);
            }
            check_all_are_free();
        }
    }
}

BOOST_AUTO_TEST_CASE(shutdown_ends_the_operations_of_a_batch)
{
    link.cut_at_bytes(statements_start, loss::delayed_reply);
    auto asked = start_acquires();
    until([&] { return link.cuts() == 1; });
    auto down = start(io, ours.shutdown(100ms));
    // Operations that were sent in another command may have been answered before.
    std::size_t ended = 0;
    for (auto& each : asked) {
        try {
            static_cast<void>(each.get(io));
        } catch (const error&) {
            ++ended;
        }
    }
    BOOST_TEST(ended >= 2U);
    link.deliver_replies();
    static_cast<void>(down.get(io));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
