// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/wait_sources.hpp"
#include "support/driver.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;
using remote::wait_sources;

BOOST_AUTO_TEST_SUITE(remote_wait_sources)

namespace {

constexpr lease_clock::time_point start_time{std::chrono::hours(100)};

/// A waiter of one source.
struct waiter
{
    waiter(wait_sources& all, const std::string& name) : of(&all), claim(driver::exclusive(name))
    {
        std::tie(source, seen) = all.watch(name);
    }
    /// Returns false if there was an event.
    bool wait(lease_clock::time_point now = start_time)
    {
        completion<woken> done([this](woken) { ++wakes; });
        return of->wait(source, *claim, seen, now, looked_in, done);
    }
    void look() { seen = source->changes; }

    wait_sources* of;
    plain_claim_ptr claim;
    wait_sources::source_ptr source;
    std::uint64_t seen = 0;
    remote::connection_number looked_in = 0;
    int wakes = 0;
};

std::size_t wake(wait_sources::completions ended)
{
    for (auto& each : ended)
        each(woken{});
    return ended.size();
}

std::vector<std::string> names_of(const std::vector<wait_sources::source_ptr>& sources)
{
    std::vector<std::string> names;
    for (const auto& each : sources)
        names.push_back(each->name);
    return names;
}

using names = std::vector<std::string>;

} // namespace

BOOST_AUTO_TEST_CASE(each_key_is_subscribed_once_for_all_waiters)
{
    wait_sources all;
    BOOST_TEST(all.empty());
    waiter one(all, "a"), two(all, "a"), other(all, "b");
    BOOST_TEST(!all.empty());
    BOOST_TEST(names_of(all.take_idle(1)) == names{"a"}, boost::test_tools::per_element());
    BOOST_TEST(names_of(all.take_idle(9)) == names{"b"}, boost::test_tools::per_element());
    BOOST_TEST(all.take_idle(9).empty());
}

BOOST_AUTO_TEST_CASE(waiters_check_again_when_the_subscription_becomes_active)
{
    wait_sources all;
    waiter one(all, "a");
    BOOST_TEST(one.wait());
    const auto asked = all.take_idle(9);
    BOOST_TEST(!all.armed("a"));
    BOOST_TEST(wake(all.arm(asked)) == 1U);
    BOOST_TEST(one.wakes == 1);
    BOOST_TEST(all.armed("a"));
    // The waiter has not checked the lock yet.
    BOOST_TEST(!one.wait());
    one.look();
    BOOST_TEST(one.wait());
}

BOOST_AUTO_TEST_CASE(new_waiter_of_an_active_subscription_checks_before_it_waits)
{
    wait_sources all;
    waiter one(all, "a");
    wake(all.arm(all.take_idle(9)));
    waiter late(all, "a");
    BOOST_TEST(!late.wait());
    late.look();
    BOOST_TEST(late.wait());
}

BOOST_AUTO_TEST_CASE(confirmed_unchanged_key_wakes_only_waiters_of_other_connections)
{
    wait_sources all;
    waiter same(all, "a"), late(all, "a"), before(all, "a"), unknown(all, "a"), elsewhere(all, "a");
    same.looked_in = late.looked_in = 2;
    before.looked_in = elsewhere.looked_in = 1;
    for (auto* each : {&same, &before, &unknown})
        BOOST_TEST(each->wait());
    const auto asked = all.take_idle(9);
    BOOST_TEST(wake(all.arm_unchanged(asked.front(), 2)) == 2U);
    BOOST_TEST(all.armed("a"));
    BOOST_TEST(same.wakes == 0);
    BOOST_TEST(before.wakes == 1);
    BOOST_TEST(unknown.wakes == 1);
    waiter latest(all, "a"), latest_elsewhere(all, "a");
    latest.looked_in = 2;
    latest_elsewhere.looked_in = 1;
    for (auto* each : {&late, &latest})
        BOOST_TEST(each->wait());
    BOOST_TEST(!latest_elsewhere.wait());
    for (auto* each : {&before, &unknown, &elsewhere}) {
        BOOST_TEST(!each->wait());
        each->look();
        BOOST_TEST(each->wait());
    }
    // A confirmation ends no wait in its own connection, but every later event ends all waits.
    BOOST_TEST(wake(all.disarmed({"a"})) == 6U);
    for (auto* each : {&same, &late, &latest})
        BOOST_TEST(!each->wait());
}

BOOST_AUTO_TEST_CASE(waiter_with_an_older_state_checks_after_a_confirmation)
{
    wait_sources all;
    waiter one(all, "a");
    one.looked_in = 2;
    wake(all.changed({"a"}));
    wake(all.arm_unchanged(all.take_idle(9).front(), 2));
    BOOST_TEST(!one.wait());
    // Later events end the waits of all waiters.
    one.look();
    wake(all.changed({"a"}));
    BOOST_TEST(!one.wait());
}

BOOST_AUTO_TEST_CASE(event_ends_the_waits_of_its_key_and_prevents_new_ones)
{
    wait_sources all;
    waiter one(all, "a"), two(all, "a"), other(all, "b");
    wake(all.arm(all.take_idle(9)));
    for (auto* each : {&one, &two, &other}) {
        each->look();
        BOOST_TEST(each->wait());
    }
    BOOST_TEST(wake(all.changed({"a", "nobody's"})) == 2U);
    BOOST_TEST(one.wakes == 1);
    BOOST_TEST(two.wakes == 1);
    BOOST_TEST(other.wakes == 0);
    BOOST_TEST(!one.wait());
    // Each wait ends only once.
    BOOST_TEST(wake(all.changed({"a"})) == 0U);
}

BOOST_AUTO_TEST_CASE(new_connection_subscribes_to_all_keys_again)
{
    wait_sources all;
    waiter one(all, "a"), two(all, "b");
    const auto asked = all.take_idle(9);
    wake(all.arm(asked));
    all.begin_round();
    BOOST_TEST(!all.armed("a"));
    BOOST_TEST(all.take_idle(9).size() == 2U);
    wake(all.arm(asked));
    BOOST_TEST(all.armed("a"));
}

BOOST_AUTO_TEST_CASE(unused_source_is_removed_after_a_while)
{
    wait_sources all;
    waiter one(all, "a"), two(all, "b"), three(all, "c");
    static_cast<void>(all.take_idle(2));
    for (auto* each : {&one, &two, &three})
        all.leave(*each->source, start_time);
    BOOST_TEST(all.forget_unused(start_time + 999ms, 1s, 9).asked.empty());
    BOOST_TEST(!all.empty());
    // The source is used again.
    waiter again(all, "b");
    auto forgotten = all.forget_unused(start_time + 1s, 1s, 1);
    BOOST_TEST(forgotten.asked == names{"a"}, boost::test_tools::per_element());
    BOOST_TEST(forgotten.more);
    // This source had not been requested yet.
    forgotten = all.forget_unused(start_time + 1s, 1s, 9);
    BOOST_TEST(forgotten.asked.empty());
    BOOST_TEST(!forgotten.more);
    BOOST_TEST(!all.empty());
    all.leave(*again.source, start_time + 2s);
    forgotten = all.forget_unused(start_time + 3s, 1s, 9);
    BOOST_TEST(forgotten.asked == names{"b"}, boost::test_tools::per_element());
    BOOST_TEST(all.empty());
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_is_never_ended)
{
    wait_sources all;
    waiter one(all, "a"), two(all, "a");
    BOOST_TEST(one.wait());
    BOOST_TEST(two.wait());
    all.cancel_wait(*one.source, *one.claim);
    all.cancel_wait(*one.source, *one.claim);
    BOOST_TEST(wake(all.changed({"a"})) == 1U);
    BOOST_TEST(one.wakes == 0);
    BOOST_TEST(two.wakes == 1);
}

BOOST_AUTO_TEST_CASE(polling_wait_ends_by_its_age)
{
    wait_sources all;
    all.poll(true);
    waiter one(all, "a"), two(all, "a"), other(all, "b");
    BOOST_TEST(one.wait(start_time));
    BOOST_TEST(two.wait(start_time + 1s));
    BOOST_TEST(other.wait(start_time + 1s));
    BOOST_TEST(wake(all.take_due(start_time - 1ns, 9)) == 0U);
    BOOST_TEST(wake(all.take_due(start_time, 9)) == 1U);
    BOOST_TEST(one.wakes == 1);
    // The waits end in several parts.
    BOOST_TEST(wake(all.take_due(start_time + 1s, 1)) == 1U);
    BOOST_TEST(wake(all.take_due(start_time + 1s, 9)) == 1U);
    BOOST_TEST(two.wakes + other.wakes == 2);
    // A wait that an event has ended does not end again.
    two.look();
    BOOST_TEST(two.wait(start_time + 2s));
    wake(all.changed({"a"}));
    BOOST_TEST(wake(all.take_due(start_time + 9s, 9)) == 0U);
}

BOOST_AUTO_TEST_CASE(waiters_that_began_before_polling_check_once_more)
{
    wait_sources all;
    waiter one(all, "a");
    BOOST_TEST(one.wait());
    all.poll(true);
    BOOST_TEST(wake(all.take_due(start_time + 9s, 9)) == 0U);
    BOOST_TEST(wake(all.wake(all.take_idle(9))) == 1U);
    one.look();
    BOOST_TEST(one.wait(start_time));
    BOOST_TEST(wake(all.take_due(start_time, 9)) == 1U);
}

BOOST_AUTO_TEST_CASE(one_time_events_are_subscribed_again)
{
    wait_sources all;
    waiter one(all, "a");
    waiter other(all, "b");
    const auto asked = all.take_idle(9);
    static_cast<void>(all.arm(asked));
    one.look();
    BOOST_TEST(one.wait());
    BOOST_TEST(wake(all.disarmed({"a", "unknown"})) == 1U);
    BOOST_TEST(one.wakes == 1);
    BOOST_TEST(!all.armed("a"));
    BOOST_TEST(all.armed("b"));
    // The woken waiter must check the lock before it waits again.
    BOOST_TEST(!one.wait());
    one.look();
    BOOST_TEST(one.wait());
    BOOST_TEST(names_of(all.take_idle(9)) == names{"a"}, boost::test_tools::per_element());
    // A source that was not requested remains idle.
    waiter third(all, "c");
    BOOST_TEST(wake(all.disarmed({"c"})) == 0U);
    BOOST_TEST(names_of(all.take_idle(9)) == names{"c"}, boost::test_tools::per_element());
    // A removed source also leaves the list of idle sources.
    all.leave(*other.source, start_time);
    static_cast<void>(all.disarmed({"b"}));
    BOOST_TEST(all.forget_unused(start_time + 1h, 1s, 9).asked.empty());
}

BOOST_AUTO_TEST_CASE(drop_all_calls_no_completion_and_removes_everything)
{
    wait_sources all;
    waiter one(all, "a");
    BOOST_TEST(one.wait());
    BOOST_TEST(all.drop_all().size() == 1U);
    BOOST_TEST(one.wakes == 0);
    BOOST_TEST(all.empty());
    // The last use of a source may end after `drop_all`.
    all.leave(*one.source, start_time);
    BOOST_TEST(!all.forget_unused(start_time + 1h, 1s, 9).more);
}

BOOST_AUTO_TEST_CASE(interest_lasts_as_long_as_the_object)
{
    const auto all = std::make_shared<wait_sources>();
    const auto claim = driver::exclusive("a");
    int wakes = 0;
    {
        remote::interest first(all, "a");
        auto second = std::move(first);
        completion<woken> done([&](woken) { ++wakes; });
        BOOST_TEST(second.wait(*claim, done));
        wake(all->changed({"a"}));
        BOOST_TEST(wakes == 1);
        completion<woken> next([&](woken) { ++wakes; });
        BOOST_TEST(!second.wait(*claim, next));
        second.look();
        BOOST_TEST(second.wait(*claim, next));
        second.cancel_wait(*claim);
        wake(all->changed({"a"}));
        BOOST_TEST(wakes == 1);
        static_cast<void>(all->forget_unused(lease_clock::time_point::max(), 0s, 9));
        BOOST_TEST(!all->empty());
    }
    static_cast<void>(all->forget_unused(lease_clock::time_point::max(), 0s, 9));
    BOOST_TEST(all->empty());
}

BOOST_AUTO_TEST_SUITE_END()
