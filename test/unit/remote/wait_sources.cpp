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
    waiter(wait_sources& all, const std::string& name) : table(&all), claim(driver::exclusive(name))
    {
        std::tie(source, seen) = all.add_user(name);
    }
    /// Returns false if there was an event.
    bool wait(lease_clock::time_point now = start_time, bool polls = false)
    {
        completion<wait_outcome> done([this](wait_outcome) { ++wakes; });
        return table->wait(source, *claim, seen, now, checked_on, done, polls);
    }
    void mark_as_seen() { seen = source->changes; }

    wait_sources* table;
    plain_claim_ptr claim;
    wait_sources::source_ptr source;
    std::uint64_t seen = 0;
    remote::connection_number checked_on = 0;
    int wakes = 0;
};

std::size_t wake(wait_sources::completions completions)
{
    for (auto& each : completions)
        each(wait_outcome{});
    return completions.size();
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
    wait_sources sources;
    BOOST_TEST(sources.empty());
    waiter one(sources, "a"), two(sources, "a"), other(sources, "b");
    BOOST_TEST(!sources.empty());
    BOOST_TEST(names_of(sources.take_unrequested(1)) == names{"a"}, boost::test_tools::per_element());
    BOOST_TEST(names_of(sources.take_unrequested(9)) == names{"b"}, boost::test_tools::per_element());
    BOOST_TEST(sources.take_unrequested(9).empty());
}

BOOST_AUTO_TEST_CASE(waiters_check_again_when_the_subscription_becomes_active)
{
    wait_sources sources;
    waiter one(sources, "a");
    BOOST_TEST(one.wait());
    const auto requested = sources.take_unrequested(9);
    BOOST_TEST(!sources.is_active("a"));
    BOOST_TEST(wake(sources.activate(requested)) == 1U);
    BOOST_TEST(one.wakes == 1);
    BOOST_TEST(sources.is_active("a"));
    // The waiter has not checked the lock yet.
    BOOST_TEST(!one.wait());
    one.mark_as_seen();
    BOOST_TEST(one.wait());
}

BOOST_AUTO_TEST_CASE(new_waiter_of_an_active_subscription_checks_before_it_waits)
{
    wait_sources sources;
    waiter one(sources, "a");
    wake(sources.activate(sources.take_unrequested(9)));
    waiter late(sources, "a");
    BOOST_TEST(!late.wait());
    late.mark_as_seen();
    BOOST_TEST(late.wait());
}

BOOST_AUTO_TEST_CASE(confirmed_unchanged_key_wakes_only_waiters_of_other_connections)
{
    wait_sources sources;
    waiter same(sources, "a"), late(sources, "a"), before(sources, "a"), unknown(sources, "a"), elsewhere(sources, "a");
    same.checked_on = late.checked_on = 2;
    before.checked_on = elsewhere.checked_on = 1;
    for (auto* each : {&same, &before, &unknown})
        BOOST_TEST(each->wait());
    const auto requested = sources.take_unrequested(9);
    BOOST_TEST(wake(sources.activate_unchanged(requested.front(), 2)) == 2U);
    BOOST_TEST(sources.is_active("a"));
    BOOST_TEST(same.wakes == 0);
    BOOST_TEST(before.wakes == 1);
    BOOST_TEST(unknown.wakes == 1);
    waiter latest(sources, "a"), latest_elsewhere(sources, "a");
    latest.checked_on = 2;
    latest_elsewhere.checked_on = 1;
    for (auto* each : {&late, &latest})
        BOOST_TEST(each->wait());
    BOOST_TEST(!latest_elsewhere.wait());
    for (auto* each : {&before, &unknown, &elsewhere}) {
        BOOST_TEST(!each->wait());
        each->mark_as_seen();
        BOOST_TEST(each->wait());
    }
    // A confirmation ends no wait in its own connection, but every later event ends all waits.
    BOOST_TEST(wake(sources.deactivate_and_wake({"a"})) == 6U);
    for (auto* each : {&same, &late, &latest})
        BOOST_TEST(!each->wait());
}

BOOST_AUTO_TEST_CASE(waiter_with_an_older_state_checks_after_a_confirmation)
{
    wait_sources sources;
    waiter one(sources, "a");
    one.checked_on = 2;
    wake(sources.wake_keys({"a"}));
    wake(sources.activate_unchanged(sources.take_unrequested(9).front(), 2));
    BOOST_TEST(!one.wait());
    // Later events end the waits of all waiters.
    one.mark_as_seen();
    wake(sources.wake_keys({"a"}));
    BOOST_TEST(!one.wait());
}

BOOST_AUTO_TEST_CASE(event_ends_the_waits_of_its_key_and_prevents_new_ones)
{
    wait_sources sources;
    waiter one(sources, "a"), two(sources, "a"), other(sources, "b");
    wake(sources.activate(sources.take_unrequested(9)));
    for (auto* each : {&one, &two, &other}) {
        each->mark_as_seen();
        BOOST_TEST(each->wait());
    }
    BOOST_TEST(wake(sources.wake_keys({"a", "nobody's"})) == 2U);
    BOOST_TEST(one.wakes == 1);
    BOOST_TEST(two.wakes == 1);
    BOOST_TEST(other.wakes == 0);
    BOOST_TEST(!one.wait());
    // Each wait ends only once.
    BOOST_TEST(wake(sources.wake_keys({"a"})) == 0U);
}

BOOST_AUTO_TEST_CASE(new_connection_subscribes_to_all_keys_again)
{
    wait_sources sources;
    waiter one(sources, "a"), two(sources, "b");
    const auto requested = sources.take_unrequested(9);
    wake(sources.activate(requested));
    sources.begin_round();
    BOOST_TEST(!sources.is_active("a"));
    BOOST_TEST(sources.take_unrequested(9).size() == 2U);
    wake(sources.activate(requested));
    BOOST_TEST(sources.is_active("a"));
}

BOOST_AUTO_TEST_CASE(unused_source_is_removed_after_a_while)
{
    wait_sources sources;
    waiter one(sources, "a"), two(sources, "b"), three(sources, "c");
    static_cast<void>(sources.take_unrequested(2));
    for (auto* each : {&one, &two, &three})
        sources.remove_user(*each->source, start_time);
    BOOST_TEST(sources.forget_unused(start_time + 999ms, 1s, 9).requested.empty());
    BOOST_TEST(!sources.empty());
    // The source is used again.
    waiter again(sources, "b");
    auto forgotten = sources.forget_unused(start_time + 1s, 1s, 1);
    BOOST_TEST(forgotten.requested == names{"a"}, boost::test_tools::per_element());
    BOOST_TEST(forgotten.more);
    // This source had not been requested yet.
    forgotten = sources.forget_unused(start_time + 1s, 1s, 9);
    BOOST_TEST(forgotten.requested.empty());
    BOOST_TEST(!forgotten.more);
    BOOST_TEST(!sources.empty());
    sources.remove_user(*again.source, start_time + 2s);
    forgotten = sources.forget_unused(start_time + 3s, 1s, 9);
    BOOST_TEST(forgotten.requested == names{"b"}, boost::test_tools::per_element());
    BOOST_TEST(sources.empty());
}

BOOST_AUTO_TEST_CASE(handler_of_a_cancelled_wait_is_not_called)
{
    wait_sources sources;
    waiter one(sources, "a"), two(sources, "a");
    BOOST_TEST(one.wait());
    BOOST_TEST(two.wait());
    sources.cancel_wait(*one.source, *one.claim);
    sources.cancel_wait(*one.source, *one.claim);
    BOOST_TEST(wake(sources.wake_keys({"a"})) == 1U);
    BOOST_TEST(one.wakes == 0);
    BOOST_TEST(two.wakes == 1);
}

BOOST_AUTO_TEST_CASE(polling_wait_ends_after_the_poll_interval)
{
    wait_sources sources;
    sources.set_polling(true);
    waiter one(sources, "a"), two(sources, "a"), other(sources, "b");
    BOOST_TEST(one.wait(start_time));
    BOOST_TEST(two.wait(start_time + 1s));
    BOOST_TEST(other.wait(start_time + 1s));
    BOOST_TEST(wake(sources.take_due(start_time - 1ns, 9)) == 0U);
    BOOST_TEST(wake(sources.take_due(start_time, 9)) == 1U);
    BOOST_TEST(one.wakes == 1);
    // The waits end in several parts.
    BOOST_TEST(wake(sources.take_due(start_time + 1s, 1)) == 1U);
    BOOST_TEST(wake(sources.take_due(start_time + 1s, 9)) == 1U);
    BOOST_TEST(two.wakes + other.wakes == 2);
    // A wait that an event has ended does not end again.
    two.mark_as_seen();
    BOOST_TEST(two.wait(start_time + 2s));
    wake(sources.wake_keys({"a"}));
    BOOST_TEST(wake(sources.take_due(start_time + 9s, 9)) == 0U);
}

BOOST_AUTO_TEST_CASE(single_wait_polls_although_polling_is_off)
{
    wait_sources sources;
    waiter polling(sources, "a"), other(sources, "b");
    BOOST_TEST(polling.wait(start_time, true));
    BOOST_TEST(other.wait());
    BOOST_TEST(wake(sources.take_due(start_time - 1ms, 100)) == 0u);
    BOOST_TEST(wake(sources.take_due(start_time, 100)) == 1u);
    BOOST_TEST(polling.wakes == 1);
    BOOST_TEST(other.wakes == 0);
    // A wait that another event has ended is not ended again.
    polling.mark_as_seen();
    BOOST_TEST(polling.wait(start_time, true));
    BOOST_TEST(wake(sources.set_active("a", true)) == 1u);
    polling.mark_as_seen();
    BOOST_TEST(polling.wait(start_time + 1ms));
    BOOST_TEST(wake(sources.take_due(start_time, 100)) == 0u);
}

BOOST_AUTO_TEST_CASE(refused_subscription_is_repeated_when_a_caller_waits_again)
{
    wait_sources sources;
    waiter one(sources, "a");
    BOOST_TEST(one.wait());
    static_cast<void>(sources.take_unrequested(10));
    BOOST_TEST(wake(sources.set_active("a", false)) == 1u);
    BOOST_TEST(!sources.is_active("a"));
    BOOST_TEST(sources.take_unrequested(10).empty());
    BOOST_TEST(!one.wait());
    BOOST_TEST(sources.take_unrequested(10).empty());
    one.mark_as_seen();
    BOOST_TEST(one.wait());
    BOOST_TEST(sources.take_unrequested(10).size() == 1u);
    BOOST_TEST(wake(sources.set_active("a", true)) == 1u);
    BOOST_TEST(sources.is_active("a"));
    // The server has ended the subscription.
    one.mark_as_seen();
    BOOST_TEST(one.wait());
    BOOST_TEST(wake(sources.set_active("a", false)) == 1u);
    BOOST_TEST(!sources.is_active("a"));
    one.mark_as_seen();
    BOOST_TEST(one.wait());
    BOOST_TEST(sources.take_unrequested(10).size() == 1u);
    BOOST_TEST(wake(sources.set_active("unknown", true)) == 0u);
    wake(sources.set_active("a", true));
}

BOOST_AUTO_TEST_CASE(waiters_that_began_before_polling_check_once_more)
{
    wait_sources sources;
    waiter one(sources, "a");
    BOOST_TEST(one.wait());
    sources.set_polling(true);
    BOOST_TEST(wake(sources.take_due(start_time + 9s, 9)) == 0U);
    BOOST_TEST(wake(sources.wake(sources.take_unrequested(9))) == 1U);
    one.mark_as_seen();
    BOOST_TEST(one.wait(start_time));
    BOOST_TEST(wake(sources.take_due(start_time, 9)) == 1U);
}

BOOST_AUTO_TEST_CASE(one_time_events_are_subscribed_again)
{
    wait_sources sources;
    waiter one(sources, "a");
    waiter other(sources, "b");
    const auto requested = sources.take_unrequested(9);
    static_cast<void>(sources.activate(requested));
    one.mark_as_seen();
    BOOST_TEST(one.wait());
    BOOST_TEST(wake(sources.deactivate_and_wake({"a", "unknown"})) == 1U);
    BOOST_TEST(one.wakes == 1);
    BOOST_TEST(!sources.is_active("a"));
    BOOST_TEST(sources.is_active("b"));
    // The woken waiter must check the lock before it waits again.
    BOOST_TEST(!one.wait());
    one.mark_as_seen();
    BOOST_TEST(one.wait());
    BOOST_TEST(names_of(sources.take_unrequested(9)) == names{"a"}, boost::test_tools::per_element());
    // A source that was not requested remains idle.
    waiter third(sources, "c");
    BOOST_TEST(wake(sources.deactivate_and_wake({"c"})) == 0U);
    BOOST_TEST(names_of(sources.take_unrequested(9)) == names{"c"}, boost::test_tools::per_element());
    // A removed source also leaves the list of idle sources.
    sources.remove_user(*other.source, start_time);
    static_cast<void>(sources.deactivate_and_wake({"b"}));
    BOOST_TEST(sources.forget_unused(start_time + 1h, 1s, 9).requested.empty());
}

BOOST_AUTO_TEST_CASE(drop_all_calls_no_completion_and_removes_everything)
{
    wait_sources sources;
    waiter one(sources, "a");
    BOOST_TEST(one.wait());
    BOOST_TEST(sources.drop_all().size() == 1U);
    BOOST_TEST(one.wakes == 0);
    BOOST_TEST(sources.empty());
    // The last use of a source may end after `drop_all`.
    sources.remove_user(*one.source, start_time);
    BOOST_TEST(!sources.forget_unused(start_time + 1h, 1s, 9).more);
}

BOOST_AUTO_TEST_CASE(interest_lasts_as_long_as_the_object)
{
    const auto sources = std::make_shared<wait_sources>();
    const auto claim = driver::exclusive("a");
    int wakes = 0;
    {
        remote::source_subscription first(sources, "a");
        auto second = std::move(first);
        completion<wait_outcome> done([&](wait_outcome) { ++wakes; });
        BOOST_TEST(second.wait(*claim, done));
        wake(sources->wake_keys({"a"}));
        BOOST_TEST(wakes == 1);
        completion<wait_outcome> next([&](wait_outcome) { ++wakes; });
        BOOST_TEST(!second.wait(*claim, next));
        second.mark_as_seen();
        BOOST_TEST(second.wait(*claim, next));
        second.cancel_wait(*claim);
        wake(sources->wake_keys({"a"}));
        BOOST_TEST(wakes == 1);
        static_cast<void>(sources->forget_unused(lease_clock::time_point::max(), 0s, 9));
        BOOST_TEST(!sources->empty());
    }
    static_cast<void>(sources->forget_unused(lease_clock::time_point::max(), 0s, 9));
    BOOST_TEST(sources->empty());
}

BOOST_AUTO_TEST_SUITE_END()
