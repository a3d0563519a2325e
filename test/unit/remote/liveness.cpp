// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/liveness.hpp"

#include <boost/test/unit_test.hpp>

using colock::remote::liveness;
using action = liveness::action;

BOOST_AUTO_TEST_SUITE(remote_liveness)

BOOST_AUTO_TEST_CASE(how_long_it_takes_to_connect_is_not_counted)
{
    liveness life({.greeting = 2, .silence = 4});
    for (int turn = 0; turn < 100; ++turn)
        BOOST_TEST((life.turn(0, false) == action::go_on));
    BOOST_TEST((life.turn(0, true) == action::go_on));
    BOOST_TEST((life.turn(0, true) == action::give_up));
}

BOOST_AUTO_TEST_CASE(a_silent_one_is_asked_once_and_given_up_in_the_end)
{
    liveness life({.greeting = 9, .silence = 4});
    BOOST_TEST((life.turn(1, true) == action::go_on));
    BOOST_TEST((life.turn(1, true) == action::ask));
    BOOST_TEST((life.turn(1, true) == action::go_on));
    BOOST_TEST((life.turn(1, true) == action::go_on));
    BOOST_TEST((life.turn(1, true) == action::give_up));
}

BOOST_AUTO_TEST_CASE(any_sign_of_life_begins_the_count_anew)
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

BOOST_AUTO_TEST_CASE(an_answer_that_is_owed_is_not_asked_for_again)
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
