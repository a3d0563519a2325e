// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/send_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <vector>

namespace colock::inline v0::redis::detail {
BOOST_AUTO_TEST_SUITE(redis_send_queue)

namespace {

using namespace std::chrono_literals;

constexpr lease_clock::time_point start{1h};

struct idle_operation final : operation
{
    explicit idle_operation(lease_clock::duration time_left, bool given_up = false) : is_given_up(given_up)
    {
        deadline = start + time_left;
    }
    void write(boost::redis::request&) override {}
    void end(operation_ptr, delivery, failure_ptr) override {}
    [[nodiscard]] bool is_unwanted() const noexcept override { return is_given_up; }

    const bool is_given_up;
};

send_queue::add_result add(send_queue& to, lease_clock::duration time_left = 5s, bool given_up = false)
{
    return to.add(std::make_unique<idle_operation>(time_left, given_up));
}

std::size_t all_of(const std::deque<batch_ptr>& batches)
{
    std::size_t operations = 0;
    for (const auto& each : batches)
        operations += each->size();
    return operations;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_first_operation_requests_a_flush)
{
    send_queue queue;
    BOOST_TEST(queue.empty());
    BOOST_TEST((add(queue) == send_queue::add_result::first));
    BOOST_TEST((add(queue) == send_queue::add_result::queued));
    BOOST_TEST(queue.next(0)->size() == 2U);
    BOOST_TEST(queue.empty());
    BOOST_TEST((queue.next(0) == nullptr));
    BOOST_TEST((add(queue) == send_queue::add_result::first));
}

BOOST_AUTO_TEST_CASE(batch_size_grows_with_load_and_shrinks_slowly)
{
    send_queue queue;
    BOOST_TEST(queue.batch_size() == 2U);
    for (int i = 0; i < 1000; ++i)
        static_cast<void>(add(queue));
    const auto first = queue.next(0);
    BOOST_TEST(queue.batch_size() == 128U);
    std::size_t sent = first->size();
    while (const auto next = queue.next(0)) {
        BOOST_TEST(next->size() <= 128U);
        sent += next->size();
    }
    BOOST_TEST(sent == 1000U);
    BOOST_TEST(queue.batch_size() > 2U);
    for (int i = 0; i < 1000; ++i) {
        static_cast<void>(add(queue));
        static_cast<void>(queue.next(0));
    }
    BOOST_TEST(queue.batch_size() == 2U);
}

BOOST_AUTO_TEST_CASE(overdue_check_continues_where_it_has_ended)
{
    send_queue queue;
    for (int i = 0; i < 10; ++i)
        static_cast<void>(add(queue, i % 2 == 0 ? 1s : 5s));
    std::size_t budget = 4;
    auto taken = queue.take_overdue(start + 2s, send_queue::unwanted_policy::keep, budget).size();
    BOOST_TEST(budget == 0U);
    BOOST_TEST(taken < 5U);
    budget = 100;
    taken += queue.take_overdue(start + 2s, send_queue::unwanted_policy::keep, budget).size();
    BOOST_TEST(budget > 0U);
    BOOST_TEST(taken == 5U);
    // The remaining operations get later deadlines.
    queue.restart_overdue_check();
    queue.postpone(10s);
    BOOST_TEST(queue.take_overdue(start + 6s, send_queue::unwanted_policy::keep, budget).empty());
    BOOST_TEST(all_of(queue.take_all()) == 5U);
    BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_CASE(unwanted_operation_is_removed_only_on_request)
{
    send_queue queue;
    static_cast<void>(add(queue, 5s, true));
    static_cast<void>(add(queue));
    std::size_t budget = 100;
    BOOST_TEST(queue.take_overdue(start, send_queue::unwanted_policy::keep, budget).empty());
    queue.restart_overdue_check();
    BOOST_TEST(queue.take_overdue(start, send_queue::unwanted_policy::remove, budget).size() == 1U);
    BOOST_TEST(queue.next(0)->size() == 1U);
}

BOOST_AUTO_TEST_CASE(closed_queue_drops_operations)
{
    send_queue queue;
    static_cast<void>(add(queue));
    BOOST_TEST(all_of(queue.close()) == 1U);
    BOOST_TEST((add(queue) == send_queue::add_result::closed));
    BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
