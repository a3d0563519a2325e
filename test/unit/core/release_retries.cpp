// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/release_retries.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::release_retries;

BOOST_AUTO_TEST_SUITE(release_retry_times)

namespace {

using time_point = lease_clock::time_point;
constexpr time_point start{1000h};

} // namespace

BOOST_AUTO_TEST_CASE(delay_doubles_from_50_ms_to_2_s)
{
    release_retries retries;
    retries.note_expiry(start, 1h);
    for (const auto delay : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms}) {
        BOOST_TEST(retries.on_failed(start, true, 1s));
        BOOST_TEST((retries.next_at() == start + delay));
    }
}

BOOST_AUTO_TEST_CASE(due_attempt_is_taken_once)
{
    release_retries retries;
    BOOST_TEST(!retries.take_due(start));
    BOOST_TEST(retries.on_failed(start, false, 1s));
    BOOST_TEST(!retries.take_due(start + 49ms));
    BOOST_TEST(retries.take_due(start + 50ms));
    BOOST_TEST(!retries.take_due(start + 50ms));
    BOOST_TEST((retries.next_at() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(retries_end_an_operation_timeout_after_the_latest_expiry)
{
    release_retries retries;
    retries.note_expiry(start, 30s);
    retries.note_expiry(start + 1s, 10s);
    BOOST_TEST(retries.on_failed(start + 31s - 10ms, true, 1s));
    BOOST_TEST((retries.next_at() == start + 31s), "the last attempt is made at the end");
    BOOST_TEST(!retries.on_failed(start + 31s, true, 1s));
}

BOOST_AUTO_TEST_CASE(retries_of_a_claim_that_does_not_expire_never_end)
{
    release_retries without_ttl;
    without_ttl.note_expiry(start, 0ms);
    BOOST_TEST(without_ttl.on_failed(start + 1000h, true, 1s));
    release_retries without_expiry;
    without_expiry.note_expiry(start, 30s);
    BOOST_TEST(without_expiry.on_failed(start + 1000h, false, 1s));
}

BOOST_AUTO_TEST_SUITE_END()
