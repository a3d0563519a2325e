// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/liveness.hpp"

#include <boost/test/unit_test.hpp>

using colock::remote::liveness;
using action = liveness::action;

BOOST_AUTO_TEST_SUITE(remote_liveness)

BOOST_AUTO_TEST_CASE(time_to_connect_is_not_counted)
{
    liveness life({.before_first_data = 2, .silence = 4});
    for (int tick = 0; tick < 100; ++tick)
        BOOST_TEST((life.check(0, false) == action::none));
    BOOST_TEST((life.check(0, true) == action::none));
    BOOST_TEST((life.check(0, true) == action::give_up));
}

BOOST_AUTO_TEST_CASE(silent_connection_is_probed_once_and_then_given_up)
{
    liveness life({.before_first_data = 9, .silence = 4});
    BOOST_TEST((life.check(1, true) == action::none));
    BOOST_TEST((life.check(1, true) == action::ask));
    BOOST_TEST((life.check(1, true) == action::none));
    BOOST_TEST((life.check(1, true) == action::none));
    BOOST_TEST((life.check(1, true) == action::give_up));
}

BOOST_AUTO_TEST_CASE(received_data_reset_the_count)
{
    liveness life({.before_first_data = 9, .silence = 3});
    for (unsigned received_count = 1; received_count < 50; ++received_count) {
        BOOST_TEST((life.check(received_count, true) == action::none));
        BOOST_TEST((life.check(received_count, true) == action::ask));
        life.answered();
        BOOST_TEST((life.check(received_count, true) == action::ask));
        life.answered();
    }
}

BOOST_AUTO_TEST_CASE(pending_probe_is_not_repeated)
{
    liveness life({.before_first_data = 9, .silence = 4});
    static_cast<void>(life.check(1, true));
    BOOST_TEST((life.check(1, true) == action::ask));
    BOOST_TEST((life.check(2, true) == action::none));
    BOOST_TEST((life.check(2, true) == action::none));
    life.answered();
    BOOST_TEST((life.check(2, true) == action::ask));
}

BOOST_AUTO_TEST_SUITE_END()
