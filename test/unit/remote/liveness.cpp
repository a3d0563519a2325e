// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/liveness.hpp"

#include <boost/test/unit_test.hpp>

using colock::remote::liveness;
using action = liveness::action;

BOOST_AUTO_TEST_SUITE(remote_liveness)

BOOST_AUTO_TEST_CASE(time_to_connect_is_not_counted)
{
    liveness life({.greeting = 2, .silence = 4});
    for (int turn = 0; turn < 100; ++turn)
        BOOST_TEST((life.turn(0, false) == action::go_on));
    BOOST_TEST((life.turn(0, true) == action::go_on));
    BOOST_TEST((life.turn(0, true) == action::give_up));
}

BOOST_AUTO_TEST_CASE(silent_connection_is_probed_once_and_then_given_up)
{
    liveness life({.greeting = 9, .silence = 4});
    BOOST_TEST((life.turn(1, true) == action::go_on));
    BOOST_TEST((life.turn(1, true) == action::ask));
    BOOST_TEST((life.turn(1, true) == action::go_on));
    BOOST_TEST((life.turn(1, true) == action::go_on));
    BOOST_TEST((life.turn(1, true) == action::give_up));
}

BOOST_AUTO_TEST_CASE(received_data_reset_the_count)
{
    liveness life({.greeting = 9, .silence = 3});
    for (unsigned heard = 1; heard < 50; ++heard) {
        BOOST_TEST((life.turn(heard, true) == action::go_on));
        BOOST_TEST((life.turn(heard, true) == action::ask));
        life.answered();
        BOOST_TEST((life.turn(heard, true) == action::ask));
        life.answered();
    }
}

BOOST_AUTO_TEST_CASE(pending_probe_is_not_repeated)
{
    liveness life({.greeting = 9, .silence = 4});
    static_cast<void>(life.turn(1, true));
    BOOST_TEST((life.turn(1, true) == action::ask));
    BOOST_TEST((life.turn(2, true) == action::go_on));
    BOOST_TEST((life.turn(2, true) == action::go_on));
    life.answered();
    BOOST_TEST((life.turn(2, true) == action::ask));
}

BOOST_AUTO_TEST_SUITE_END()
