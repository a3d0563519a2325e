// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "served.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(readers_share_and_each_expires_by_itself)
{
    served f;
    const auto slow = driver::shared("k", 0, 60s);
    const auto brief = driver::shared("k", 0, 60s);
    f.test_driver->grant(slow);
    f.test_driver->grant(brief);
    BOOST_TEST(f.test_driver->inspect("k").size() == 2u);
    BOOST_TEST((f.test_driver->extend(brief, 500ms).status == extend_status::extended));
    const auto brief_is_gone = [&] { return f.test_driver->inspect("k").size() == 1; };
    run_until(f.io, [&] { return brief_is_gone(); });
    f.test_driver->check_not_held(brief);
    BOOST_TEST((f.test_driver->extend(brief, 10s).status == extend_status::not_held));
    f.test_driver->check_held(slow);
    BOOST_TEST((f.test_driver->extend(slow, 100s).status == extend_status::extended));
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 90'000);
    f.test_driver->release_held(slow);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(a_reader_alone_is_one_string_and_a_second_makes_it_a_set)
{
    served f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"me", "here", "why", ""});
    const plain_claim_ptr first = new plain_claim({.key = "k", .mode = lock_mode::shared, .ttl = 20s, .owner = owner});
    const auto second = driver::shared("k", 0, 10s);
    f.test_driver->grant(first);
    BOOST_TEST(f.raw({"GET", "{colock}:k"}).starts_with('s' + first->token().hex()));
    const auto alone = f.test_driver->inspect("k");
    BOOST_REQUIRE(alone.size() == 1u);
    BOOST_TEST((alone[0].mode == lock_mode::shared));
    BOOST_TEST(alone[0].owner == "me");
    f.test_driver->check_held(first);
    BOOST_TEST((f.test_driver->extend(first, 40s).status == extend_status::extended));
    const auto again = f.test_driver->grant(first);

    BOOST_TEST(f.test_driver->grant(second) > again);
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "2");
    const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
    const auto both = f.test_driver->inspect("k");
    BOOST_REQUIRE(both.size() == 2u);
    BOOST_TEST((both[0].remaining > 5s && both[0].remaining <= 10s));
    BOOST_TEST((both[1].remaining > 15s && both[1].remaining <= 20s));
    BOOST_TEST(both[1].owner == "me");
    BOOST_TEST((both[1].created == alone[0].created));
    f.test_driver->check_held(first);
    f.test_driver->release_held(first);
    f.test_driver->check_not_held(first);
    f.test_driver->check_held(second);
    f.test_driver->release_held(second);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(each_reader_keeps_its_own_ttl_or_none)
{
    served f;
    const auto eternal = driver::shared("k", 0, 0ms);
    const auto brief = driver::shared("k", 0, 20s);
    for (const bool eternal_first : {true, false}) {
        f.test_driver->grant(eternal_first ? eternal : brief);
        f.test_driver->grant(eternal_first ? brief : eternal);
        BOOST_TEST(f.raw({"PTTL", "{colock}:k"}) == "-1");
        BOOST_TEST((f.test_driver->check_refused(driver::exclusive("k")).retry_after == 0ms));
        f.raw({"DEL", "{colock}#w:k"});
        f.test_driver->release_held(eternal);
        const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
        BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
        const auto busy = f.test_driver->check_refused(driver::exclusive("k"));
        BOOST_TEST((busy.retry_after > 15s && busy.retry_after <= 20s));
        f.raw({"DEL", "{colock}#w:k"});
        f.test_driver->release_held(brief);
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
    }
}

BOOST_AUTO_TEST_CASE(a_semaphore_counts_its_holders)
{
    served f;
    const auto first = driver::shared("k", 2, 20s);
    const auto second = driver::shared("k", 2, 60s);
    const auto third = driver::shared("k", 2, 60s);
    f.test_driver->grant(first);
    f.test_driver->grant(second);
    const auto busy = f.test_driver->check_refused(third);
    BOOST_TEST((busy.retry_after > 15s && busy.retry_after <= 20s + 1ms));
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "2");
    f.test_driver->grant(second);
    f.test_driver->release_held(first);
    f.test_driver->grant(third);
}

BOOST_AUTO_TEST_CASE(expired_readers_do_not_block_others)
{
    served f;
    const auto leave_expired_readers = [&] {
        f.raw({"EVAL",
            "for i = 1, 3500 do redis.call('ZADD', '{colock}:k', i, 's' .. string.format('%043d', i) .. '\\0\\0\\0') "
            "end",
            "0"});
    };
    const auto check_grant = [&](const plain_claim_ptr& claim) {
        leave_expired_readers();
        f.test_driver->grant(claim);
        f.test_driver->release_held(claim);
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
    };
    check_grant(driver::one_attempt("k"));
    check_grant(driver::shared("k", 2));
    leave_expired_readers();
    f.test_driver->grant_all({driver::exclusive("k"), driver::exclusive("l")});
}

BOOST_AUTO_TEST_CASE(a_waiting_writer_keeps_new_readers_out)
{
    served f;
    const auto reader = driver::shared("k", 0, 60s);
    f.test_driver->grant(reader);
    const auto writer = driver::exclusive("k");
    f.test_driver->check_refused(writer);
    BOOST_TEST(f.raw({"GET", "{colock}#w:k"}) == writer->token().hex());
    f.test_driver->check_refused(driver::shared("k"));
    // A reader that already holds the lock is granted again.
    f.test_driver->grant(reader);
    f.test_driver->release_held(reader);
    // A reader that finds the lock free gives way to the writer.
    const auto refused = f.test_driver->check_refused(driver::shared("k"));
    BOOST_TEST((refused.retry_after > 0ms && refused.retry_after <= 6s));
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
    f.test_driver->grant(writer);
    BOOST_TEST(f.raw({"EXISTS", "{colock}#w:k"}) == "0");
    f.test_driver->release_held(writer);
    f.test_driver->grant(driver::shared("k"));
}

BOOST_AUTO_TEST_CASE(single_attempts_of_readers_do_not_starve_a_writer)
{
    served f;
    client_side others({.url = f.server.url()});
    const auto reader = driver::shared("k");
    f.test_driver->grant(reader);
    const auto writer = driver::exclusive("k");
    others.test_driver.check_refused(writer);
    f.test_driver->release_held(reader);
    // One reader may acquire the lock and release it again. After this the adapter knows of the writer.
    f.test_driver->check_refused(driver::one_attempt("k", lock_mode::shared));
    f.raw({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 10; ++i)
        f.test_driver->check_refused(driver::one_attempt("k", lock_mode::shared));
    BOOST_TEST(f.raw({"INFO", "commandstats"}).find("cmdstat_set:") == std::string::npos);
    others.test_driver.grant(writer);
    others.test_driver.release_held(writer);
    // The reader checks for a writer first and is then granted the lock.
    f.test_driver->grant(driver::one_attempt("k", lock_mode::shared));
}

BOOST_AUTO_TEST_CASE(a_writer_that_gives_up_lets_readers_in)
{
    served f;
    const auto reader = driver::shared("k", 0, 60s);
    f.test_driver->grant(reader);
    const auto writer = driver::exclusive("k");
    f.test_driver->check_refused(writer);
    BOOST_TEST((f.test_driver->abandon(writer).status == release_status::not_held));
    BOOST_TEST(f.raw({"EXISTS", "{colock}#w:k"}) == "0");
    f.test_driver->grant(driver::shared("k"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
