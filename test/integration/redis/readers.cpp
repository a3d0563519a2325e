// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "served.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace colock::testing {

namespace {

/// Name of the member that is the intent of a writer.
std::string intent_of(const plain_claim_ptr& writer)
{
    return 'w' + writer->token().hex();
}

/// Stores a reader that has expired, and an intent that has expired if `with_intent` is set.
void store_expired(served& f, bool with_intent)
{
    f.raw({"ZADD", "{colock}:k", "1", stored_holder('a', true)});
    if (with_intent)
        f.raw({"ZADD", "{colock}:k", "-1", 'w' + std::string(32, 'b')});
}

} // namespace

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

BOOST_AUTO_TEST_CASE(a_reader_alone_is_a_set)
{
    served f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"me", "here", "why", ""});
    const plain_claim_ptr first = new plain_claim({.key = "k", .mode = lock_mode::shared, .ttl = 20s, .owner = owner});
    const auto second = driver::shared("k", 0, 10s);
    f.test_driver->grant(first);
    BOOST_TEST(f.raw({"ZRANGE", "{colock}:k", "0", "-1"}).starts_with('s' + first->token().hex()));
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
    BOOST_TEST((ttl > 15'000 && ttl <= 40'000));
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
        auto writer = driver::exclusive("k");
        BOOST_TEST((f.test_driver->check_refused(writer).retry_after == 0ms));
        f.test_driver->abandon(writer);
        f.test_driver->release_held(eternal);
        const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
        BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
        writer = driver::exclusive("k");
        const auto busy = f.test_driver->check_refused(writer);
        BOOST_TEST((busy.retry_after > 15s && busy.retry_after <= 20s));
        f.test_driver->abandon(writer);
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
    BOOST_TEST(f.raw({"ZSCORE", "{colock}:k", intent_of(writer)}).starts_with("-1"));
    f.test_driver->check_refused(driver::shared("k"));
    // A reader that already holds the lock is granted again.
    f.test_driver->grant(reader);
    f.test_driver->release_held(reader);
    // A reader that finds the lock free gives way to the writer.
    const auto refused = f.test_driver->check_refused(driver::shared("k"));
    BOOST_TEST((refused.retry_after > 0ms && refused.retry_after <= 6s));
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "1");
    f.test_driver->grant(writer);
    BOOST_TEST(f.raw({"GET", "{colock}:k"}).starts_with(writer->token().hex()));
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
    for (int i = 0; i < 10; ++i)
        f.test_driver->check_refused(driver::one_attempt("k", lock_mode::shared));
    others.test_driver.grant(writer);
    others.test_driver.release_held(writer);
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
    BOOST_TEST(f.raw({"ZSCORE", "{colock}:k", intent_of(writer)}) == "(nil)");
    f.test_driver->grant(driver::shared("k"));
}

BOOST_AUTO_TEST_CASE(an_intent_is_no_holder)
{
    served f;
    const auto reader = driver::shared("k", 3, 60s);
    const auto writer = driver::exclusive("k");
    f.test_driver->grant(reader);
    f.test_driver->check_refused(writer);
    BOOST_TEST(f.test_driver->inspect("k").size() == 1u);
    BOOST_TEST(f.test_driver->list().size() == 1u);
    BOOST_TEST(f.test_driver->purge().empty());
    f.test_driver->release_held(reader);
    BOOST_TEST(f.test_driver->inspect("k").empty());
    BOOST_TEST(f.test_driver->list().empty());
    BOOST_TEST(f.test_driver->purge().empty());
    BOOST_TEST(f.test_driver->break_key("k").empty());
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(an_intent_survives_a_break)
{
    served f;
    f.test_driver->grant(driver::shared("k"));
    f.test_driver->grant(driver::shared("k", 0, 0ms));
    const auto writer = driver::exclusive("k");
    f.test_driver->check_refused(writer);
    BOOST_TEST(f.test_driver->break_key("k").size() == 2u);
    f.test_driver->check_refused(driver::shared("k"));
    // The set expires with the intent.
    const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((ttl > 3'000 && ttl <= 6'000));
    f.test_driver->grant(writer);
}

BOOST_AUTO_TEST_CASE(an_intent_is_not_counted_by_a_semaphore)
{
    served f;
    const auto first = driver::shared("k", 2, 60s), second = driver::shared("k", 2, 60s);
    f.test_driver->grant(first);
    f.test_driver->grant(second);
    const auto writer = driver::exclusive("k");
    f.test_driver->check_refused(writer);
    // Each is granted again, although the set has three members.
    f.test_driver->grant(first);
    f.test_driver->grant(second);
    f.test_driver->release_held(first);
    // An intent that has expired does not count either.
    f.raw({"ZADD", "{colock}:k", "-1", intent_of(writer)});
    f.test_driver->grant(first);
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "2");
}

BOOST_AUTO_TEST_CASE(a_set_does_not_expire_before_an_intent)
{
    served f;
    f.test_driver->grant(driver::shared("k", 0, 1s));
    f.test_driver->check_refused(driver::exclusive("k"));
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 3'000);
    run_until(f.io, [&] { return f.test_driver->inspect("k").empty(); });
    f.test_driver->check_refused(driver::shared("k"));
    // The reader has left no trace, so the set expires with the intent.
    run_until(f.io, [&] { return f.raw({"EXISTS", "{colock}:k"}) == "0"; });
    f.test_driver->grant(driver::shared("k"));
}

BOOST_AUTO_TEST_CASE(an_intent_that_has_expired_lets_readers_in)
{
    served f;
    const auto reader = driver::shared("k");
    f.test_driver->grant(reader);
    const auto writer = driver::exclusive("k");
    f.test_driver->check_refused(writer);
    f.raw({"ZADD", "{colock}:k", "-1", intent_of(writer)});
    const auto second = driver::shared("k");
    f.test_driver->grant(second);
    f.test_driver->release_held(second);
    BOOST_TEST(f.raw({"ZSCORE", "{colock}:k", intent_of(writer)}) == "(nil)");
}

BOOST_AUTO_TEST_CASE(a_writer_replaces_a_set_of_expired_members_by_one_write)
{
    served f;
    const auto first = driver::exclusive("first");
    f.test_driver->grant(first);
    f.test_driver->release_held(first);
    for (const bool with_intent : {false, true}) {
        for (const bool all : {false, true}) {
            store_expired(f, with_intent);
            f.raw({"CONFIG", "RESETSTAT"});
            const auto writer = driver::one_attempt("k");
            if (all)
                f.test_driver->grant_all({writer, driver::exclusive("l")});
            else
                f.test_driver->grant(writer);
            const auto calls = f.raw({"INFO", "commandstats"});
            BOOST_TEST(
                (calls.find("cmdstat_del:") == std::string::npos && calls.find("cmdstat_zrem:") == std::string::npos),
                calls);
            f.test_driver->release_held(writer);
            f.raw({"FLUSHALL"});
        }
    }
}

BOOST_AUTO_TEST_CASE(a_reader_writes_before_it_removes_expired_members)
{
    served f;
    // A set that loses its last member is deleted. In a slot that migrates, the script could not write it again.
    store_expired(f, true);
    const auto reader = driver::shared("k", 1);
    f.test_driver->grant(reader);
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "1");
    f.test_driver->release_held(reader);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
