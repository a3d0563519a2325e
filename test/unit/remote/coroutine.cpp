// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/coroutine.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <stdexcept>

namespace colock::testing {
namespace {

using remote::coroutine;

struct failure : std::runtime_error
{
    failure() : std::runtime_error("failure") {}
};

/// Owns a coroutine that is suspended twice.
struct owner
{
    std::function<void()> begin = [] {};
    std::function<void()> act = [] {};
    std::function<void()> begin_nested = [] {};
    /// Number of the last step that was reached.
    int step = 0;
    remote::suspension_point point{};
    coroutine frame{};

    coroutine run()
    {
        step = 1;
        const int result = co_await point.suspend([this] { begin(); }, [] { return 2; });
        step = result;
        act();
        co_await nested();
        step = 4;
    }
    coroutine nested()
    {
        co_await point.suspend([this] { begin_nested(); });
        step = 3;
    }
    void start()
    {
        frame = run();
        frame.start();
        point.rethrow();
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(remote_coroutine)

BOOST_AUTO_TEST_CASE(coroutine_continues_once_for_each_suspension)
{
    owner it;
    BOOST_TEST(!it.point.resume());
    it.start();
    BOOST_TEST(it.step == 1);
    BOOST_TEST(it.point.resume());
    BOOST_TEST(it.step == 2);
    BOOST_TEST(it.point.resume());
    BOOST_TEST(it.step == 4);
    BOOST_TEST(!it.point.resume());
}

BOOST_AUTO_TEST_CASE(destroyed_coroutine_is_not_resumed)
{
    owner it;
    it.start();
    it.frame = {};
    BOOST_TEST(!it.point.resume());
    it.start();
    BOOST_TEST(it.point.resume());
    // Suspended in the nested coroutine.
    it.frame = {};
    BOOST_TEST(!it.point.resume());
    BOOST_TEST(it.step == 2);
}

BOOST_AUTO_TEST_CASE(function_that_begins_the_wait_may_resume_or_destroy_the_coroutine)
{
    owner it;
    it.begin = [&] { BOOST_TEST(it.point.resume()); };
    it.start();
    BOOST_TEST(it.step == 2);
    it.begin = [&] { it.frame = {}; };
    it.start();
    BOOST_TEST(it.step == 1);
    BOOST_TEST(!it.point.resume());
}

BOOST_AUTO_TEST_CASE(coroutine_stays_suspended_after_an_exception_of_the_function_that_begins_the_wait)
{
    owner it;
    it.begin = [] { throw failure(); };
    BOOST_CHECK_THROW(it.start(), failure);
    it.point.rethrow();
    it.begin_nested = [] { throw failure(); };
    BOOST_CHECK_THROW(it.point.resume(), failure);
    BOOST_TEST(it.step == 2);
    BOOST_TEST(it.point.resume());
    BOOST_TEST(it.step == 4);
}

BOOST_AUTO_TEST_CASE(coroutine_that_an_exception_has_ended_is_not_resumed)
{
    owner it;
    it.act = [] { throw failure(); };
    it.start();
    BOOST_CHECK_THROW(it.point.resume(), failure);
    BOOST_TEST(!it.point.resume());
    BOOST_TEST(it.step == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
