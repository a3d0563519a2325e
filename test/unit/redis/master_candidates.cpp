// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/master_candidates.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock::redis::detail;
using colock::errc;

namespace {

const endpoint first{"a", "1"};
const endpoint second{"b", "1"};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_master_candidates)

BOOST_AUTO_TEST_CASE(half_of_the_answers_decide_nothing)
{
    master_candidates candidates(4);
    candidates.add_address(0, first);
    candidates.add_failure(1, colock::make_failure(errc::unavailable, "unknown name"));
    candidates.add_failure(2, colock::make_failure(errc::unavailable, "silent"));
    BOOST_TEST(!candidates.is_decided());
    candidates.add_address(3, second);
    BOOST_TEST(candidates.is_decided());
    BOOST_TEST(candidates.failures().size() == 2u);
}

BOOST_AUTO_TEST_CASE(sentinel_that_was_cut_off_does_not_win_because_it_answers_first)
{
    master_candidates candidates(3);
    candidates.add_address(0, first);
    BOOST_TEST(!candidates.is_decided());
    candidates.add_address(1, second);
    BOOST_TEST(!candidates.is_decided());
    candidates.add_address(2, second);
    BOOST_TEST(candidates.is_decided());
    BOOST_TEST((candidates.take_next() == second));
}

BOOST_AUTO_TEST_CASE(sentinels_that_agree_need_not_wait_for_the_others)
{
    master_candidates candidates(5);
    candidates.add_address(4, first);
    candidates.add_address(2, first);
    candidates.add_failure(0, colock::make_failure(errc::unavailable, "unknown name"));
    BOOST_TEST(!candidates.is_decided());
    candidates.add_address(1, first);
    BOOST_TEST(candidates.is_decided());
    BOOST_TEST(!candidates.is_complete());
}

BOOST_AUTO_TEST_CASE(all_ended_sentinels_decide)
{
    master_candidates candidates(3);
    candidates.add_address(2, first);
    candidates.add_failure(0, colock::make_failure(errc::unavailable, "x"));
    BOOST_TEST(!candidates.is_decided());
    candidates.add_failure(1, colock::make_failure(errc::unavailable, "y"));
    BOOST_TEST(candidates.is_decided());
    BOOST_TEST(candidates.is_complete());
    BOOST_TEST((candidates.take_next() == first));
    BOOST_TEST(!candidates.take_next());
}

BOOST_AUTO_TEST_CASE(address_of_most_sentinels_is_first_and_each_is_taken_once)
{
    master_candidates candidates(3);
    candidates.add_address(0, first);
    candidates.add_address(1, second);
    candidates.add_address(2, second);
    BOOST_TEST((candidates.take_next() == second));
    BOOST_TEST((candidates.take_next() == first));
    BOOST_TEST(!candidates.take_next());
}

BOOST_AUTO_TEST_CASE(sentinels_that_are_asked_again_may_name_the_current_address_but_none_that_has_failed)
{
    master_candidates candidates(1);
    candidates.add_address(0, first);
    BOOST_TEST((candidates.take_next() == first));
    candidates.add_address(0, second);
    BOOST_TEST((candidates.take_next() == second));
    candidates.begin_again(second);
    BOOST_TEST(!candidates.is_decided());
    candidates.add_address(0, first);
    BOOST_TEST(!candidates.take_next());
    candidates.add_address(0, second);
    BOOST_TEST((candidates.take_next() == second));
}

/// Otherwise Sentinels that contradict each other would keep a client connecting forever, without a delay.
BOOST_AUTO_TEST_CASE(address_that_was_replaced_is_not_taken_again)
{
    master_candidates candidates(1);
    candidates.add_address(0, first);
    BOOST_TEST((candidates.take_next() == first));
    candidates.begin_again(first);
    candidates.add_address(0, second);
    BOOST_TEST((candidates.take_next() == second));
    candidates.begin_again(second);
    candidates.add_address(0, first);
    BOOST_TEST(!candidates.take_next());
    BOOST_TEST(candidates.is_complete());
}

BOOST_AUTO_TEST_CASE(tie_is_decided_by_the_order_of_the_url)
{
    master_candidates candidates(2);
    candidates.add_address(1, second);
    candidates.add_address(0, first);
    BOOST_TEST((candidates.take_next() == first));
    BOOST_TEST((candidates.take_next() == second));
}

BOOST_AUTO_TEST_CASE(late_address_is_taken_last)
{
    master_candidates candidates(3);
    candidates.add_address(1, second);
    candidates.add_address(2, second);
    BOOST_TEST((candidates.take_next() == second));
    BOOST_TEST(!candidates.take_next());
    BOOST_TEST(!candidates.is_complete());
    candidates.add_address(0, first);
    BOOST_TEST((candidates.take_next() == first));
}

BOOST_AUTO_TEST_SUITE_END()
