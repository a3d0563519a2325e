// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/operation_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::remote;
using namespace std::chrono_literals;

namespace {

constexpr lease_clock::time_point start_time{std::chrono::hours(100)};

struct operation_end
{
    char name;
    delivery status;
    errc code;
};

/// An operation that does nothing, and records how it ended.
class idle_operation final : public operation
{
public:
    idle_operation(char name, std::vector<operation_end>& ends, lease_clock::time_point until)
        : name_(name), ends_(ends)
    {
        deadline = until;
    }
    void start() override {}
    void fail(delivery status, failure_ptr failure) override
    {
        ends_.push_back({name_, status, failure->code});
        if (then)
            then();
    }
    [[nodiscard]] bool unwanted() const noexcept override
    {
        ++check_count;
        return is_unwanted;
    }

    [[nodiscard]] bool is_queued_at_backend() const noexcept override { return has_place; }

    bool is_unwanted = false;
    /// Whether the claim has a place in the backend's queue.
    bool has_place = false;
    std::function<void()> then{};
    static inline std::size_t check_count = 0;

private:
    char name_;
    std::vector<operation_end>& ends_;
};

struct fixture
{
    boost::intrusive_ptr<idle_operation> make(char name, lease_clock::time_point until = start_time + 1s)
    {
        return boost::intrusive_ptr<idle_operation>(new idle_operation(name, ends, until));
    }

    void end_some(lease_clock::time_point now, const failure_ptr& connection_failure = nullptr)
    {
        BOOST_TEST(!queue.end_some(now, connection_failure, now + 1s));
    }
    void add(std::size_t count, lease_clock::time_point until = start_time + 1s)
    {
        for (std::size_t i = 0; i < count; ++i)
            queue.add(make('x', until));
    }
    /// Calls `end_some` until nothing is left.
    void end_in_parts(lease_clock::time_point now)
    {
        std::size_t check_count = idle_operation::check_count, end_count = ends.size();
        for (bool more = true; more;) {
            more = queue.end_some(now, nullptr, now + 1s);
            BOOST_TEST_REQUIRE(idle_operation::check_count - std::exchange(check_count, idle_operation::check_count) <=
                               remote::max_per_handler);
            BOOST_TEST_REQUIRE(ends.size() - std::exchange(end_count, ends.size()) <= remote::max_per_handler);
        }
        BOOST_TEST(!queue.has_unreported_failures());
    }

    std::vector<operation_end> ends;
    operation_queue queue;
};

constexpr std::size_t many = 20'000;

} // namespace

BOOST_FIXTURE_TEST_SUITE(remote_operation_queue, fixture)

BOOST_AUTO_TEST_CASE(operations_are_started_in_order)
{
    const auto one = make('a'), two = make('b');
    BOOST_TEST(queue.add(one));
    BOOST_TEST(!queue.add(two));
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST((queue.take() == one));
    BOOST_TEST(queue.has_in_flight());
    // The operation returns to its place in the queue.
    queue.put_back(*one);
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST(queue.in_flight_count() == 0U);
    BOOST_TEST((queue.take() == one));
    BOOST_TEST((queue.take() == two));
    BOOST_TEST(!queue.take());
    BOOST_TEST(queue.in_flight_count() == 2U);
    queue.remove(*one);
    queue.remove(*one);
    BOOST_TEST(queue.has_in_flight());
    BOOST_TEST(queue.in_flight_count() == 1U);
    queue.remove(*two);
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST(ends.empty());
}

BOOST_AUTO_TEST_CASE(operations_alone_in_flight_are_counted)
{
    const auto one = make('a'), two = make('b');
    for (unsigned i = 0; i < 5; ++i) {
        BOOST_TEST(queue.alone_in_a_row() == i);
        queue.add(one);
        static_cast<void>(queue.take());
        queue.remove(*one);
    }
    // An operation that waits for the previous one to end is also alone in flight.
    queue.add(one);
    static_cast<void>(queue.take());
    queue.add(two);
    queue.remove(*one);
    static_cast<void>(queue.take());
    BOOST_TEST(queue.alone_in_a_row() == 7U);
    queue.add(one);
    static_cast<void>(queue.take());
    BOOST_TEST(queue.alone_in_a_row() == 0U);
    queue.remove(*one);
    queue.remove(*two);
    BOOST_TEST(queue.alone_in_a_row() == 0U);
}

BOOST_AUTO_TEST_CASE(overdue_operation_ends)
{
    queue.add(make('a'));
    queue.add(make('b'));
    static_cast<void>(queue.take());
    end_some(start_time);
    BOOST_TEST(ends.empty());
    queue.postpone(1s);
    end_some(start_time + 1s);
    BOOST_TEST(ends.empty());
    end_some(start_time + 2s);
    BOOST_TEST_REQUIRE(ends.size() == 2U);
    BOOST_TEST(
        (ends[0].name == 'a' && ends[0].status == delivery::unanswered && ends[0].code == errc::outcome_unknown));
    BOOST_TEST((ends[1].name == 'b' && ends[1].status == delivery::unsent && ends[1].code == errc::unavailable));
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_CASE(unwanted_operation_ends_while_it_waits)
{
    const auto one = make('a'), two = make('b');
    queue.add(one);
    queue.add(two);
    static_cast<void>(queue.take());
    one->is_unwanted = two->is_unwanted = true;
    end_some(start_time);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST(ends[0].name == 'b');
}

BOOST_AUTO_TEST_CASE(operation_of_a_queued_claim_is_not_overdue_before_it_is_started)
{
    const auto woken = make('w'), later = make('l');
    woken->has_place = later->has_place = true;
    queue.add(woken);
    queue.add(later);
    queue.add(make('n'));
    auto now = start_time;
    for (const auto end = now + 10s; now < end; now += 100ms)
        end_some(now);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST(ends[0].name == 'n');
    // The operation timeout begins when the operation is started.
    BOOST_TEST((queue.take() == woken));
    for (const auto end = now + 800ms; now < end; now += 100ms)
        end_some(now);
    BOOST_TEST(ends.size() == 1U);
    end_some(now + 200ms);
    BOOST_TEST_REQUIRE(ends.size() == 2U);
    BOOST_TEST((ends[1].name == 'w' && ends[1].status == delivery::unanswered));
    // An operation that is not wanted any more ends, whatever its deadline.
    later->is_unwanted = true;
    end_some(now + 300ms);
    BOOST_TEST_REQUIRE(ends.size() == 3U);
    BOOST_TEST(ends[2].name == 'l');
}

BOOST_AUTO_TEST_CASE(operation_of_a_queued_claim_is_overdue_after_a_timeout_without_connection)
{
    const auto woken = make('w');
    woken->has_place = true;
    queue.add(woken);
    end_some(start_time + 5s);
    const auto lost = make_failure(errc::unavailable);
    end_some(start_time + 5s + 900ms, lost);
    BOOST_TEST(ends.empty());
    end_some(start_time + 6s, lost);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST((ends[0].status == delivery::unsent && ends[0].code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(many_operations_end_in_parts)
{
    // The overdue operation at the end of the queue is found too.
    add(many);
    add(1, start_time);
    end_in_parts(start_time);
    BOOST_TEST(ends.size() == 1U);
    end_in_parts(start_time + 1s);
    BOOST_TEST(ends.size() == many + 1);
    BOOST_TEST(queue.empty());

    add(many);
    while (queue.take()) {
    }
    end_in_parts(start_time + 1s);
    BOOST_TEST(ends.size() == 2 * many + 1);
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST(queue.in_flight_count() == 0U);
}

BOOST_AUTO_TEST_CASE(exactly_one_part_is_checked_once)
{
    add(remote::max_per_handler);
    const auto before = idle_operation::check_count;
    end_in_parts(start_time);
    BOOST_TEST(idle_operation::check_count - before == remote::max_per_handler);
}

BOOST_AUTO_TEST_CASE(operation_taken_during_a_pass_is_not_checked)
{
    add(many);
    BOOST_TEST(queue.end_some(start_time, nullptr, start_time + 1s));
    while (queue.take()) {
    }
    add(1, start_time);
    // The operation was added behind the current position, so the next pass finds it.
    end_in_parts(start_time);
    end_in_parts(start_time);
    BOOST_TEST(ends.size() == 1U);
}

BOOST_AUTO_TEST_CASE(many_operations_are_given_up_in_parts)
{
    add(many);
    while (queue.take()) {
    }
    add(many);
    queue.give_up_in_flight(make_failure(errc::outcome_unknown));
    queue.give_up_waiting(make_failure(errc::unavailable));
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST(queue.empty());
    BOOST_TEST(queue.has_unreported_failures());
    BOOST_TEST(ends.empty());
    end_in_parts(start_time);
    BOOST_TEST(ends.size() == 2 * many);
    BOOST_TEST((ends.front().status == delivery::unanswered && ends.front().code == errc::outcome_unknown));
    BOOST_TEST((ends.back().status == delivery::unsent && ends.back().code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(given_up_operation_ends_exactly_once)
{
    const auto answered = make('a'), sent_back = make('b');
    for (const auto& each : {answered, sent_back}) {
        queue.add(each);
        static_cast<void>(queue.take());
    }
    queue.give_up_in_flight(make_failure(errc::outcome_unknown));
    BOOST_TEST(queue.in_flight_count() == 0U);
    queue.remove(*answered);
    queue.put_back(*sent_back);
    BOOST_TEST(queue.in_flight_count() == 0U);
    BOOST_TEST(queue.empty());
    end_some(start_time);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST(ends[0].name == 'b');
    // Operations that are added later are not affected.
    queue.add(answered);
    static_cast<void>(queue.take());
    queue.put_back(*answered);
    BOOST_TEST(!queue.empty());
}

BOOST_AUTO_TEST_CASE(completion_may_give_up_more_operations)
{
    const auto first = make('a', start_time);
    first->then = [this] { queue.give_up_waiting(make_failure(errc::access_denied)); };
    queue.add(first);
    static_cast<void>(queue.take());
    queue.add(make('b'));
    end_in_parts(start_time);
    BOOST_TEST_REQUIRE(ends.size() == 2U);
    BOOST_TEST((ends[1].name == 'b' && ends[1].code == errc::access_denied));
}

BOOST_AUTO_TEST_CASE(drop_all_calls_no_completion_and_rejects_operations)
{
    const auto one = make('a'), two = make('b');
    queue.add(one);
    queue.add(two);
    static_cast<void>(queue.take());
    queue.give_up_in_flight(make_failure(errc::outcome_unknown));
    queue.drop_all();
    BOOST_TEST(!queue.has_unreported_failures());
    BOOST_TEST(!queue.add(one));
    BOOST_TEST(queue.empty());
    BOOST_TEST(!queue.has_in_flight());
    BOOST_TEST(ends.empty());
    BOOST_TEST(one->use_count() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
