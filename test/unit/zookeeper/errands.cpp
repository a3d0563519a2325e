// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/errands.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <vector>

using namespace colock;
using namespace colock::zookeeper::detail;
using namespace std::chrono_literals;

namespace {

constexpr lease_clock::time_point begun{std::chrono::hours(100)};

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
    void fail(delivery how, failure_ptr why) override { ends_.push_back({name_, how, why->code}); }
    [[nodiscard]] bool unwanted() const noexcept override { return is_unwanted; }

    bool is_unwanted = false;

private:
    char name_;
    std::vector<end>& ends_;
};

struct scene
{
    boost::intrusive_ptr<idle_operation> make(char name, lease_clock::time_point until = begun + 1s)
    {
        return boost::intrusive_ptr<idle_operation>(new idle_operation(name, ends, until));
    }

    std::vector<end> ends;
    errands all;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_errands, scene)

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
    BOOST_TEST((all.take() == one));
    BOOST_TEST((all.take() == two));
    BOOST_TEST(!all.take());
    all.ended(*one);
    all.ended(*one);
    BOOST_TEST(all.under_way());
    all.ended(*two);
    BOOST_TEST(!all.under_way());
    BOOST_TEST(ends.empty());
}

BOOST_AUTO_TEST_CASE(what_takes_too_long_ends)
{
    all.add(make('a'));
    all.add(make('b'));
    static_cast<void>(all.take());
    all.end_overdue(begun, nullptr);
    BOOST_TEST(ends.empty());
    all.postpone(1s);
    all.end_overdue(begun + 1s, nullptr);
    BOOST_TEST(ends.empty());
    all.end_overdue(begun + 2s, nullptr);
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
    all.end_overdue(begun, nullptr);
    BOOST_TEST_REQUIRE(ends.size() == 1U);
    BOOST_TEST(ends[0].who == 'b');
}

BOOST_AUTO_TEST_CASE(dropping_all_ends_nothing_and_lets_nothing_in)
{
    const auto one = make('a'), two = make('b');
    all.add(one);
    all.add(two);
    static_cast<void>(all.take());
    all.drop_all();
    BOOST_TEST(!all.add(one));
    BOOST_TEST(all.empty());
    BOOST_TEST(!all.under_way());
    BOOST_TEST(ends.empty());
    BOOST_TEST(one->use_count() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
