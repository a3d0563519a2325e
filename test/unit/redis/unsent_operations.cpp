// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/unsent_operations.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace colock::inline v0::redis::detail {
namespace {

struct reporting_operation final : operation
{
    explicit reporting_operation(std::function<void(errc)> given) : on_end(std::move(given)) {}

    void write(boost::redis::request&) override {}
    void end(operation_ptr, delivery how, failure_ptr why) override
    {
        BOOST_TEST((how == delivery::unsent));
        on_end(why->code);
    }

    const std::function<void(errc)> on_end;
};

struct fixture
{
    void give_up(std::size_t count, const std::function<void(errc)>& on_end)
    {
        for (std::size_t i = 0; i < count; ++i)
            static_cast<void>(queue.add(std::make_unique<reporting_operation>(on_end)));
        dropped.add(queue.take_all(), make_failure(errc::unavailable));
    }

    send_queue queue;
    unsent_operations dropped{queue};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(redis_unsent_operations, fixture)

BOOST_AUTO_TEST_CASE(operations_end_in_batches)
{
    constexpr std::size_t many = 4 * max_per_handler;
    std::size_t ended = 0;
    give_up(many, [&](errc) { ++ended; });
    BOOST_TEST(ended == 0U);
    BOOST_TEST(dropped.end_some());
    BOOST_TEST((ended >= max_per_handler && ended < 2 * max_per_handler));
    const auto before = ended;
    BOOST_TEST(dropped.end_some());
    BOOST_TEST((ended > before && ended < many));
    while (dropped.end_some()) {
    }
    BOOST_TEST(ended == many);
    BOOST_TEST(dropped.empty());
}

BOOST_AUTO_TEST_CASE(waits_end_in_batches)
{
    std::size_t ended = 0;
    remote::wait_sources::completions waits;
    for (std::size_t i = 0; i < max_per_handler + 1; ++i)
        waits.push_back([&](wait_outcome) { ++ended; });
    dropped.add(std::move(waits));
    BOOST_TEST(dropped.end_some());
    BOOST_TEST(ended == max_per_handler);
    BOOST_TEST(!dropped.empty());
    BOOST_TEST(!dropped.end_some());
    BOOST_TEST(ended == max_per_handler + 1);
}

BOOST_AUTO_TEST_CASE(completion_may_drop_more_operations)
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
    while (dropped.end_some()) {
    }
    BOOST_TEST(ended == 1U);
    BOOST_TEST(dropped.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
