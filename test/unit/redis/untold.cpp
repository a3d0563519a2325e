// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/completion_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>

namespace colock::redis::detail {
BOOST_AUTO_TEST_SUITE(redis_untold)

namespace {

struct idle_operation final : operation
{
    void write(boost::redis::request&) override {}
    void end(operation_ptr, delivery, failure_ptr) override {}
};

batch_ptr part_of_size(std::size_t size)
{
    auto made = std::make_unique<batch>();
    for (std::size_t i = 0; i < size; ++i)
        made->add(std::make_unique<idle_operation>());
    return made;
}

/// As many as are told before the event loop has a turn.
std::size_t tell(completion_queue& from, std::size_t travel_together)
{
    from.begin_turn();
    do {
        static_cast<void>(from.take());
    } while (!from.empty() && !from.is_enough(travel_together));
    return from.told();
}

} // namespace

BOOST_AUTO_TEST_CASE(small_parts_are_told_together_until_they_are_as_many_as_travel_together)
{
    completion_queue some;
    for (int i = 0; i < 1000; ++i)
        some.add(part_of_size(100));
    BOOST_TEST(some.operations() == 100'000U);
    std::size_t turns = 0;
    for (; !some.empty(); ++turns)
        BOOST_TEST(tell(some, 128) == 200U);
    BOOST_TEST(turns == 500U);
    BOOST_TEST(some.operations() == 0U);
}

BOOST_AUTO_TEST_CASE(a_part_as_large_as_the_load_would_have_it_is_told_by_itself)
{
    completion_queue some;
    some.add(part_of_size(8));
    some.add(part_of_size(2));
    some.add(part_of_size(2));
    BOOST_TEST(tell(some, 8) == 8U);
    BOOST_TEST(tell(some, 8) == 4U);
    BOOST_TEST(some.empty());
}

BOOST_AUTO_TEST_CASE(all_of_them_can_be_taken_away)
{
    completion_queue some;
    some.add(part_of_size(3));
    some.add(part_of_size(4));
    BOOST_TEST(some.take_all().size() == 2U);
    BOOST_TEST(some.empty());
    BOOST_TEST(some.operations() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::redis::detail
