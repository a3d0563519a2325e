// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/server_clock.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

namespace colock::inline v0::mongo::detail {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(mongo_server_clock)

BOOST_AUTO_TEST_CASE(limits_of_the_server_time_contain_the_time_of_the_answer)
{
    const lease_clock::time_point sent_at{10s};
    const auto received_at = sent_at + 30ms;
    server_clock measured;
    measured.update(1'000, sent_at, received_at);
    BOOST_TEST(measured.last_reported() == 1'000);
    // The server has read its clock at some time between the request and the answer.
    BOOST_TEST(measured.earliest(received_at) == 1'000);
    BOOST_TEST(measured.latest(received_at) == 1'030);
    BOOST_TEST(measured.earliest(received_at + 500us) == 1'000);
    BOOST_TEST(measured.latest(received_at + 500us) == 1'031);
    BOOST_TEST((measured.age(received_at) == 30ms));
}

BOOST_AUTO_TEST_CASE(lead_of_a_clock_is_what_the_answers_prove)
{
    const lease_clock::time_point sent_at{10s};
    server_clock first;
    server_clock second;
    first.update(1'000, sent_at, sent_at + 30ms);
    second.update(1'025, sent_at, sent_at + 30ms);
    // Each of the clocks may have been read 30 ms before or after the other one.
    BOOST_TEST(first.lead_over(second) == 0);
    BOOST_TEST(second.lead_over(first) == 0);
    second.update(1'100, sent_at, sent_at + 30ms);
    BOOST_TEST(second.lead_over(first) == 70);
    BOOST_TEST(first.lead_over(second) == -70);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::mongo::detail
