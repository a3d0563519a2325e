// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/completion_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>

namespace colock::inline v0::redis::detail {
BOOST_AUTO_TEST_SUITE(redis_completion_queue)

namespace {

struct idle_operation final : operation
{
    void start() override {}
    void write(boost::redis::request&) override {}
    void end(delivery, failure_ptr) override {}
};

batch_ptr batch_of_size(std::size_t size)
{
    auto result = std::make_unique<batch>();
    for (std::size_t i = 0; i < size; ++i)
        result->add(*new idle_operation);
    return result;
}

/// Takes the batches of one round. Returns the number of their operations.
std::size_t take_round(completion_queue& from, std::size_t batch_size)
{
    from.begin_round();
    do {
        static_cast<void>(from.take());
    } while (!from.empty() && !from.is_round_full(batch_size));
    return from.taken_count();
}

} // namespace

BOOST_AUTO_TEST_CASE(small_batches_are_completed_together_up_to_the_batch_size)
{
    completion_queue queue;
    for (int i = 0; i < 1000; ++i)
        queue.add(batch_of_size(100));
    std::size_t rounds = 0;
    for (; !queue.empty(); ++rounds)
        BOOST_TEST(take_round(queue, 128) == 200U);
    BOOST_TEST(rounds == 500U);
}

BOOST_AUTO_TEST_CASE(batch_of_full_size_is_completed_alone)
{
    completion_queue queue;
    queue.add(batch_of_size(8));
    queue.add(batch_of_size(2));
    queue.add(batch_of_size(2));
    BOOST_TEST(take_round(queue, 8) == 8U);
    BOOST_TEST(take_round(queue, 8) == 4U);
    BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_CASE(operation_outlives_a_batch_that_was_not_sent)
{
    const boost::intrusive_ptr<idle_operation> kept(new idle_operation);
    {
        batch unsent;
        unsent.add(*kept);
        BOOST_TEST(kept->sent_in == &unsent);
    }
    BOOST_TEST(kept->sent_in == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
