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

struct end
{
    char who;
    delivery how;
    errc why;
};

/// Does nothing, and notes how it ended.
class idle_operation final : public operation
{
public:
    idle_operation(char name, std::vector<end>& ends, lease_clock::time_point until) : name_(name), ends_(ends)
    {
        deadline = until;
    }
    void start() override {}
    void fail(delivery how, failure_ptr why) override
    {
        ends_.push_back({name_, how, why->code});
        if (then)
            then();
    }
    [[nodiscard]] bool unwanted() const noexcept override
    {
        ++looks;
        return is_unwanted;
    }

    bool is_unwanted = false;
    std::function<void()> then{};
    static inline std::size_t looks = 0;

private:
    char name_;
    std::vector<end>& ends_;
};

struct scene
{
    boost::intrusive_ptr<idle_operation> make(char name, lease_clock::time_point until = start_time + 1s)
    {
        return boost::intrusive_ptr<idle_operation>(new idle_operation(name, ends, until));
    }

    void end_some(lease_clock::time_point now) { BOOST_TEST(!all.end_some(now, nullptr)); }
    void add(std::size_t count, lease_clock::time_point until = start_time + 1s)
    {
        for (std::size_t i = 0; i < count; ++i)
            all.add(make('x', until));
    }
    /// Until nothing is left to be ended, in parts.
    void end_in_parts(lease_clock::time_point now)
    {
        std::size_t looks = idle_operation::looks, told = ends.size();
        for (bool more = true; more;) {
            more = all.end_some(now, nullptr);
            BOOST_TEST_REQUIRE(
                idle_operation::looks - std::exchange(looks, idle_operation::looks) <= remote::most_per_turn);
            BOOST_TEST_REQUIRE(ends.size() - std::exchange(told, ends.size()) <= remote::most_per_turn);
        }
        BOOST_TEST(!all.owes_news());
    }

    std::vector<end> ends;
    operation_queue all;
};

constexpr std::size_t many = 20'000;

} // namespace

BOOST_FIXTURE_TEST_SUITE(remote_operation_queue, scene)

BOOST_AUTO_TEST_CASE(they_are_started_in_their_order)
{
    const auto one = make('a'), two = make('b');
    BOOST_TEST(all.add(one));
    BOOST_TEST(!all.add(two));
    BOOST_TEST(!all.under_way());
    BOOST_TEST((all.take() == one));
    BOOST_TEST(all.under_way());
    // Back to where it was.
    all.put_back(*one);
    BOOST_TEST(!all.under_way());
    BOOST_TEST(all.count_under_way() == 0U);
    BOOST_TEST((all.take() == one));
    BOOST_TEST((all.take() == two));
    BOOST_TEST(!all.take());
    BOOST_TEST(all.count_under_way() == 2U);
    all.ended(*one);
    all.ended(*one);
    BOOST_TEST(all.under_way());
    BOOST_TEST(all.count_under_way() == 1U);
    all.ended(*two);
    BOOST_TEST(!all.under_way());
    BOOST_TEST(ends.empty());
}

BOOST_AUTO_TEST_CASE(those_that_are_alone_are_counted_until_one_is_not)
{
    const auto one = make('a'), two = make('b');
    for (unsigned i = 0; i < 5; ++i) {
        BOOST_TEST(all.alone_in_a_row() == i);
        all.add(one);
        static_cast<void>(all.take());
        all.ended(*one);
    }
    // One that waits for it to end is alone, too.
    all.add(one);
    static_cast<void>(all.take());
    all.add(two);
    all.ended(*one);
    static_cast<void>(all.take());
    BOOST_TEST(all.alone_in_a_row() == 7U);
    all.add(one);
    static_cast<void>(all.take());
    BOOST_TEST(all.alone_in_a_row() == 0U);
    all.ended(*one);
    all.ended(*two);
    BOOST_TEST(all.alone_in_a_row() == 0U);
}

BOOST_AUTO_TEST_CASE(what_takes_too_long_ends)
{
    all.add(make('a'));
    all.add(make('b'));
    static_cast<void>(all.take());
    end_some(start_time);
    BOOST_TEST(ends.empty());
    all.postpone(1s);
    end_some(start_time + 1s);
    BOOST_TEST(ends.empty());
    end_some(start_time + 2s);
    BOOST_TEST_REQUIRE(ends.size() == 2U);
    BOOST_TEST((ends[0].who == 'a' && ends[0].how == delivery::unanswered && ends[0].why == errc::outcome_unknown));
    BOOST_TEST((ends[1].who == 'b' && ends[1].how == delivery::unsent && ends[1].why == errc::unavailable));
    BOOST_TEST(!all.under_way());
    BOOST_TEST(all.empty());
}

BOOST_AUTO_TEST_CASE(what_nobody_wants_ends_while_it_waits)
{
    const auto one = make('a'), two = make('b');
    all.add(one);
    all.add(two);
    static_cast<void>(all.take());
    one->is_unwanted = two->is_unwanted = true;
    end_some(start_time);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST(ends[0].who == 'b');
}

BOOST_AUTO_TEST_CASE(many_end_in_parts)
{
    // The last one that waits is found, too.
    add(many);
    add(1, start_time);
    end_in_parts(start_time);
    BOOST_TEST(ends.size() == 1U);
    end_in_parts(start_time + 1s);
    BOOST_TEST(ends.size() == many + 1);
    BOOST_TEST(all.empty());

    add(many);
    while (all.take()) {
    }
    end_in_parts(start_time + 1s);
    BOOST_TEST(ends.size() == 2 * many + 1);
    BOOST_TEST(!all.under_way());
    BOOST_TEST(all.count_under_way() == 0U);
}

BOOST_AUTO_TEST_CASE(as_many_as_are_looked_at_in_one_go_are_looked_at_once)
{
    add(remote::most_per_turn);
    const auto before = idle_operation::looks;
    end_in_parts(start_time);
    BOOST_TEST(idle_operation::looks - before == remote::most_per_turn);
}

BOOST_AUTO_TEST_CASE(what_is_taken_during_a_look_is_not_looked_at)
{
    add(many);
    BOOST_TEST(all.end_some(start_time, nullptr));
    while (all.take()) {
    }
    add(1, start_time);
    // It has come behind that look; the next finds it.
    end_in_parts(start_time);
    end_in_parts(start_time);
    BOOST_TEST(ends.size() == 1U);
}

BOOST_AUTO_TEST_CASE(many_are_given_up_in_parts)
{
    add(many);
    while (all.take()) {
    }
    add(many);
    all.give_up_running(make_failure(errc::outcome_unknown));
    all.give_up_waiting(make_failure(errc::unavailable));
    BOOST_TEST(!all.under_way());
    BOOST_TEST(all.empty());
    BOOST_TEST(all.owes_news());
    BOOST_TEST(ends.empty());
    end_in_parts(start_time);
    BOOST_TEST(ends.size() == 2 * many);
    BOOST_TEST((ends.front().how == delivery::unanswered && ends.front().why == errc::outcome_unknown));
    BOOST_TEST((ends.back().how == delivery::unsent && ends.back().why == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(what_was_given_up_is_told_once_whatever_becomes_of_it)
{
    const auto answered = make('a'), sent_back = make('b');
    for (const auto& each : {answered, sent_back}) {
        all.add(each);
        static_cast<void>(all.take());
    }
    all.give_up_running(make_failure(errc::outcome_unknown));
    BOOST_TEST(all.count_under_way() == 0U);
    all.ended(*answered);
    all.put_back(*sent_back);
    BOOST_TEST(all.count_under_way() == 0U);
    BOOST_TEST(all.empty());
    end_some(start_time);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST(ends[0].who == 'b');
    // Those that come after are not concerned.
    all.add(answered);
    static_cast<void>(all.take());
    all.put_back(*answered);
    BOOST_TEST(!all.empty());
}

BOOST_AUTO_TEST_CASE(whoever_is_told_may_give_up_more)
{
    const auto first = make('a', start_time);
    first->then = [this] { all.give_up_waiting(make_failure(errc::access_denied)); };
    all.add(first);
    static_cast<void>(all.take());
    all.add(make('b'));
    end_in_parts(start_time);
    BOOST_TEST_REQUIRE(ends.size() == 2U);
    BOOST_TEST((ends[1].who == 'b' && ends[1].why == errc::access_denied));
}

BOOST_AUTO_TEST_CASE(dropping_all_ends_nothing_and_lets_nothing_in)
{
    const auto one = make('a'), two = make('b');
    all.add(one);
    all.add(two);
    static_cast<void>(all.take());
    all.give_up_running(make_failure(errc::outcome_unknown));
    all.drop_all();
    BOOST_TEST(!all.owes_news());
    BOOST_TEST(!all.add(one));
    BOOST_TEST(all.empty());
    BOOST_TEST(!all.under_way());
    BOOST_TEST(ends.empty());
    BOOST_TEST(one->use_count() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
