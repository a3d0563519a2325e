// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/unsent_operations.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace colock::redis::detail {
namespace {

struct told_operation final : operation
{
    explicit told_operation(std::function<void(errc)> given) : told(std::move(given)) {}

    void write(boost::redis::request&) override {}
    void end(operation_ptr, delivery how, failure_ptr why) override
    {
        BOOST_TEST((how == delivery::unsent));
        told(why->code);
    }

    const std::function<void(errc)> told;
};

struct fixture
{
    void give_up(std::size_t count, const std::function<void(errc)>& told)
    {
        for (std::size_t i = 0; i < count; ++i)
            static_cast<void>(unsent.add(std::make_unique<told_operation>(told)));
        dropped.add(unsent.take_all(), make_failure(errc::unavailable));
    }

    send_queue unsent;
    unsent_operations dropped{unsent};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(redis_never_sent, fixture)

BOOST_AUTO_TEST_CASE(operations_are_told_in_parts)
{
    constexpr std::size_t many = 4 * most_per_turn;
    std::size_t ended = 0;
    give_up(many, [&](errc) { ++ended; });
    BOOST_TEST(ended == 0U);
    BOOST_TEST(dropped.tell_some());
    BOOST_TEST((ended >= most_per_turn && ended < 2 * most_per_turn));
    const auto before = ended;
    BOOST_TEST(dropped.tell_some());
    BOOST_TEST((ended > before && ended < many));
    while (dropped.tell_some()) {
    }
    BOOST_TEST(ended == many);
    BOOST_TEST(dropped.empty());
}

BOOST_AUTO_TEST_CASE(waits_are_told_in_parts)
{
    std::size_t ended = 0;
    remote::wait_sources::completions waits;
    for (std::size_t i = 0; i < most_per_turn + 1; ++i)
        waits.push_back([&](woken) { ++ended; });
    dropped.add(std::move(waits));
    BOOST_TEST(dropped.tell_some());
    BOOST_TEST(ended == most_per_turn);
    BOOST_TEST(!dropped.empty());
    BOOST_TEST(!dropped.tell_some());
    BOOST_TEST(ended == most_per_turn + 1);
}

BOOST_AUTO_TEST_CASE(caller_that_is_told_may_give_up_more)
{
    std::size_t ended = 0;
    bool inside = false;
    give_up(1, [&](errc) {
        inside = true;
        give_up(1, [&](errc) {
            BOOST_TEST(!inside);
            ++ended;
        });
        inside = false;
    });
    while (dropped.tell_some()) {
    }
    BOOST_TEST(ended == 1U);
    BOOST_TEST(dropped.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::redis::detail
