// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The layout that other lock libraries use: a key holds only the token.
#include "served.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_plain_layout)

BOOST_AUTO_TEST_CASE(the_key_holds_just_the_token)
{
    served f({.layout = redis::layout::plain});
    const auto supported = f.test_driver->backend().traits().capabilities;
    BOOST_TEST((!supported.fence && !supported.shared && !supported.semaphore));
    const auto claim = driver::exclusive("k", 20s);
    BOOST_TEST(f.test_driver->grant(claim) == 0u);
    BOOST_TEST(f.raw({"GET", "k"}) == claim->token().hex());
    BOOST_TEST(f.raw({"SET", "k", "other", "NX", "PX", "1000"}) == "(nil)");
    f.test_driver->check_held(claim);
    BOOST_TEST((f.test_driver->extend(claim, 30s).status == extend_status::extended));
    f.test_driver->release_held(claim);
    BOOST_TEST(f.raw({"SET", "k", "other", "NX", "PX", "30000"}) == "OK");
    const auto busy = f.test_driver->check_refused(claim);
    BOOST_TEST((busy.retry_after > 20s));
    BOOST_TEST((f.test_driver->release(claim).status == release_status::not_held));
    BOOST_TEST(f.raw({"GET", "k"}) == "other");
    BOOST_TEST(f.raw({"DBSIZE"}) == "1");
}

BOOST_AUTO_TEST_CASE(foreign_token_is_listed_as_exclusive_without_owner)
{
    served f({.prefix = "locks:", .layout = redis::layout::plain});
    const std::string token = "s" + std::string(60, '1');
    BOOST_TEST(f.raw({"SET", "locks:k", token, "NX", "PX", "30000"}) == "OK");
    for (const auto& seen : {f.test_driver->inspect("k"), f.test_driver->list(), f.test_driver->break_key("k")}) {
        BOOST_TEST_REQUIRE(seen.size() == 1u);
        BOOST_TEST(seen[0].key == "k");
        BOOST_TEST((seen[0].mode == lock_mode::exclusive));
        BOOST_TEST(seen[0].owner.empty());
        BOOST_TEST(!seen[0].created.has_value());
        BOOST_TEST((seen[0].remaining > 10s));
    }
}

BOOST_AUTO_TEST_CASE(keys_of_its_own_are_refused_as_keys_of_users)
{
    for (const std::string prefix : {"", "locks:", "{colock}"}) {
        served f({.prefix = prefix, .layout = redis::layout::plain});
        BOOST_TEST(f.raw({"SET", "{colock}#fence", "1700000000000000"}) == "OK");
        std::vector<std::string> keys{"{colock}#probe", "{colock}#fence", "{colock}#g:k"};
        if (prefix == "{colock}")
            keys.insert(keys.end(), {"#probe", "#fence"});
        for (const auto& key : keys) {
            const auto refused = [&](const failure_ptr& why) {
                BOOST_TEST_REQUIRE(why);
                BOOST_TEST((why->code == errc::invalid_key));
            };
            auto& backend = f.test_driver->backend();
            refused(f.test_driver->create(driver::exclusive(key)).error);
            refused(f.test_driver->adopt(std::string(32, 'a'), driver::exclusive(key)).error);
            refused(run_coro(f.io, backend.listing({.filter = {.key = key}})).error);
            refused(
                run_coro(f.io, backend.listing({.action = listing_action::break_key, .filter = {.key = key}})).error);
            refused(run_coro(f.io, backend.listing({.filter = {.key = key}})).error);
        }
        BOOST_TEST(f.raw({"GET", "{colock}#fence"}) == "1700000000000000");
        f.test_driver->grant(driver::exclusive("k"));
        f.test_driver->grant(driver::exclusive("k#fence"));
    }
    served f;
    f.test_driver->grant(driver::exclusive("{colock}#probe"));
    f.test_driver->grant(driver::exclusive("#probe"));
}

BOOST_AUTO_TEST_CASE(a_waiter_notices_a_silent_release)
{
    served f({.layout = redis::layout::plain, .poll_interval = 20ms});
    BOOST_TEST(f.raw({"SET", "k", "other", "NX", "PX", "30000"}) == "OK");
    auto waiting = f.test_driver->start_acquire(driver::exclusive("k"));
    run_until(f.io, [&] { return f.raw({"PUBSUB", "NUMSUB", "k"}) == "k\n1\n"; });
    f.raw({"DEL", "k"});
    waiting.get(f.io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
