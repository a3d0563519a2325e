// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/backoff.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace colock;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(remote_backoff)

BOOST_AUTO_TEST_CASE(each_delay_is_about_twice_the_one_before_up_to_a_limit)
{
    for (int round = 0; round < 100; ++round) {
        remote::backoff delays;
        for (int failures = 0; failures < 40; ++failures) {
            const auto middle = 100ms * (1 << std::min(failures, 4));
            const auto delay = delays.next();
            BOOST_TEST((delay >= middle / 2 && delay <= middle * 3 / 2));
        }
    }
}

BOOST_AUTO_TEST_CASE(success_resets_the_delay)
{
    remote::backoff delays;
    for (int failures = 0; failures < 10; ++failures)
        static_cast<void>(delays.next());
    delays.reset();
    BOOST_TEST((delays.next() <= 150ms));
}

BOOST_AUTO_TEST_SUITE_END()
