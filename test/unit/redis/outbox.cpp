// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/send_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <vector>

namespace colock::redis::detail {
BOOST_AUTO_TEST_SUITE(redis_outbox)

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
    [[nodiscard]] bool unwanted() const noexcept override { return is_given_up; }

    const bool is_given_up;
};

send_queue::added add(send_queue& to, lease_clock::duration time_left = 5s, bool given_up = false)
{
    return to.add(std::make_unique<idle_operation>(time_left, given_up));
}

std::size_t all_of(const std::deque<batch_ptr>& parts)
{
    std::size_t operations = 0;
    for (const auto& each : parts)
        operations += each->size();
    return operations;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_the_first_has_to_ask_for_a_turn)
{
    send_queue some;
    BOOST_TEST(some.empty());
    BOOST_TEST((add(some) == send_queue::added::first));
    BOOST_TEST((add(some) == send_queue::added::behind_others));
    BOOST_TEST(some.next(0)->size() == 2U);
    BOOST_TEST(some.empty());
    BOOST_TEST((some.next(0) == nullptr));
    BOOST_TEST((add(some) == send_queue::added::first));
}

BOOST_AUTO_TEST_CASE(parts_grow_with_the_load_and_shrink_slowly_after_it)
{
    send_queue some;
    BOOST_TEST(some.part() == 2U);
    for (int i = 0; i < 1000; ++i)
        static_cast<void>(add(some));
    const auto first = some.next(0);
    BOOST_TEST(some.part() == 128U);
    std::size_t sent = first->size();
    while (const auto part = some.next(0)) {
        BOOST_TEST(part->size() <= 128U);
        sent += part->size();
    }
    BOOST_TEST(sent == 1000U);
    BOOST_TEST(some.part() > 2U);
    for (int i = 0; i < 1000; ++i) {
        static_cast<void>(add(some));
        static_cast<void>(some.next(0));
    }
    BOOST_TEST(some.part() == 2U);
}

BOOST_AUTO_TEST_CASE(a_look_at_what_is_overdue_goes_on_where_it_has_ended)
{
    send_queue some;
    for (int i = 0; i < 10; ++i)
        static_cast<void>(add(some, i % 2 == 0 ? 1s : 5s));
    std::size_t room = 4;
    auto taken = some.take_overdue(start + 2s, send_queue::unwanted::stay, room).size();
    BOOST_TEST(room == 0U);
    BOOST_TEST(taken < 5U);
    room = 100;
    taken += some.take_overdue(start + 2s, send_queue::unwanted::stay, room).size();
    BOOST_TEST(room > 0U);
    BOOST_TEST(taken == 5U);
    // The rest is given more time.
    some.look_anew();
    some.postpone(10s);
    BOOST_TEST(some.take_overdue(start + 6s, send_queue::unwanted::stay, room).empty());
    BOOST_TEST(all_of(some.take_all()) == 5U);
    BOOST_TEST(some.empty());
}

BOOST_AUTO_TEST_CASE(what_nobody_waits_for_goes_where_it_is_asked_to)
{
    send_queue some;
    static_cast<void>(add(some, 5s, true));
    static_cast<void>(add(some));
    std::size_t room = 100;
    BOOST_TEST(some.take_overdue(start, send_queue::unwanted::stay, room).empty());
    some.look_anew();
    BOOST_TEST(some.take_overdue(start, send_queue::unwanted::go, room).size() == 1U);
    BOOST_TEST(some.next(0)->size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_closed_one_drops_what_comes)
{
    send_queue some;
    static_cast<void>(add(some));
    BOOST_TEST(all_of(some.close()) == 1U);
    BOOST_TEST((add(some) == send_queue::added::never));
    BOOST_TEST(some.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::redis::detail
