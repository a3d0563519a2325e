// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_verbs.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace colock::contract {

// Shared.

COLOCK_CONTRACT_CASE(locker, shared_locks_share, &capabilities::shared)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options shared{.mode = lock_mode::shared};
    auto first = run_coro(on.io(), mine.acquire("k", shared)), second = run_coro(on.io(), other.acquire("k", shared));
    BOOST_TEST(first.mode() == lock_mode::shared);
    BOOST_TEST(!run_coro(on.io(), mine.try_acquire("k")));
    auto writer = testing::start(on.io(), mine.acquire("k"));
    on.pass_time(1ms);
    run_coro(on.io(), first.release(on_failure::raise));
    on.pass_time(1ms);
    BOOST_TEST(!writer.done());
    run_coro(on.io(), second.release(on_failure::raise));
    auto exclusive = writer.get(on.io());
    BOOST_TEST(!run_coro(on.io(), other.try_acquire("k", shared)));
    run_coro(on.io(), exclusive.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_semaphore_has_as_many_holders_as_it_says, &capabilities::semaphore)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options two{.mode = lock_mode::shared, .max_holders = 2};
    auto first = run_coro(on.io(), mine.acquire("k", two)), second = run_coro(on.io(), other.acquire("k", two));
    BOOST_TEST(!run_coro(on.io(), mine.try_acquire("k", two)));
    auto waiting = testing::start(on.io(), other.acquire("k", two));
    on.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    run_coro(on.io(), first.release(on_failure::raise));
    auto third = waiting.get(on.io());
    run_coro(on.io(), second.release(on_failure::raise));
    run_coro(on.io(), third.release(on_failure::raise));
}

// Groups.

COLOCK_CONTRACT_CASE(locker, a_group_holds_all_its_keys_in_order)
{
    const auto locker = on.make_locker();
    auto group = run_coro(on.io(), locker.acquire_all(strings{"b", "a", "c", "a"}));
    BOOST_TEST(group.held());
    CHECK_STRINGS(keys_of(locker.held_locks()), {"a", "b", "c"});
    if (on.able().list) {
        BOOST_TEST(run_coro(on.io(), locker.list({.group = group.id()})).size() == 3U);
    }
    run_coro(on.io(), group.acquire("0"));
    BOOST_TEST(group.size() == 4U);
    for (const auto& report : run_coro(on.io(), group.extend(1h)))
        BOOST_TEST(!report.status);
    for (const auto& lock : group.locks())
        BOOST_TEST((lock.ttl() == 1h));
    strings released;
    for (const auto& report : run_coro(on.io(), group.release())) {
        BOOST_TEST(!report.status);
        released.push_back(report.key);
    }
    CHECK_STRINGS(released, {"0", "c", "b", "a"});
    BOOST_TEST(group.empty());
    BOOST_TEST(!is_taken(on, locker, "b"));
}

COLOCK_CONTRACT_CASE(locker, group_holds_its_lower_keys_while_it_waits)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("b"));
    auto waiting = testing::start(on.io(), mine.acquire_all(strings{"a", "b", "c"}));
    pass_slowly_until(on, [&] { return mine.stats().waiting > 0; });
    BOOST_TEST(is_taken(on, other, "a"));
    BOOST_TEST(!is_taken(on, other, "c"));
    BOOST_TEST(!waiting.done());
    // Nothing of the group is reported before it is complete.
    BOOST_TEST(mine.held_locks().empty());
    BOOST_TEST(mine.stats().grants == 0U);
    run_coro(on.io(), blocker.release(on_failure::raise));
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    BOOST_TEST(group.size() == 3U);
    BOOST_TEST(mine.stats().grants == 3U);
    BOOST_TEST(mine.stats().waits == 1U);
    run_coro(on.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, group_is_renewed_until_it_is_complete)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("b"));
    const auto ttl = on.short_ttl();
    auto waiting = testing::start(on.io(), mine.acquire_all(strings{"a", "b"}, {.ttl = ttl}));
    pass_slowly(on, ttl * 5 / 2);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(is_taken(on, other, "a"));
    run_coro(on.io(), blocker.release(on_failure::raise));
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    for (const auto& each : group.locks())
        BOOST_TEST((each.expires_at() - lease_clock::now() > ttl / 2));
    run_coro(on.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, cancelled_group_releases_everything)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("b"));
    for (const bool without_ttl : {false, true}) {
        if (without_ttl && !on.able().no_ttl)
            continue;
        asio::cancellation_signal cancel;
        std::optional<error_code> result;
        mine.async_acquire_all(strings{"a", "b"}, {.ttl = without_ttl ? 0ms : std::chrono::milliseconds(1h)},
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
        pass_slowly_until(on, [&] { return mine.stats().waiting > 0; });
        BOOST_TEST(is_taken(on, other, "a"));
        cancel.emit(asio::cancellation_type::terminal);
        pass_slowly_until(on, [&] { return result && mine.stats().settling == 0; });
        BOOST_TEST((result == asio::error::operation_aborted));
        BOOST_TEST(!is_taken(on, other, "a"));
    }
    run_coro(on.io(), blocker.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, group_that_loses_a_lease_before_completion_starts_again, &capabilities::list)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("b"));
    auto waiting = testing::start(
        on.io(), mine.acquire_all(strings{"a", "b"}, {.ttl = on.short_ttl(), .retry = retry_policy::fixed(20ms)}));
    pass_slowly_until(on, [&] { return mine.stats().waiting > 0; });
    run_coro(on.io(), other.break_lock("a"));
    auto thief = run_coro(on.io(), other.acquire("a"));
    pass_slowly(on, on.short_ttl());
    run_coro(on.io(), blocker.release(on_failure::raise));
    pass_slowly(on, on.short_ttl() / 2);
    // The group waits for its first key again, and has released its place at the second.
    BOOST_TEST(!waiting.done());
    BOOST_TEST(!is_taken(on, other, "b"));
    run_coro(on.io(), thief.release(on_failure::raise));
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    BOOST_TEST(mine.stats().losses[static_cast<std::size_t>(lost_reason::taken)] == 0U);
    run_coro(on.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, deadlock_with_a_nested_acquire_ends_by_total_time)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options brief{.retry = retry_policy::fixed(20ms).total_time(on.short_ttl())};
    auto outer = run_coro(on.io(), other.acquire("b"));
    auto group = testing::start(on.io(), mine.acquire_all(strings{"a", "b"}, brief));
    pass_slowly_until(on, [&] { return mine.stats().waiting > 0; });
    BOOST_TEST((failure_of<retry_error>(on, other.acquire("a", {.retry = retry_policy::fixed(20ms).total_time(
                                                                    on.short_ttl() / 4)})) == errc::retry_exhausted));
    pass_slowly_until(on, [&] { return group.done(); });
    BOOST_CHECK_THROW(static_cast<void>(group.get(on.io())), retry_error);
    run_coro(on.io(), outer.release(on_failure::raise));
}

namespace {

/// Records grants in the order in which they arrived.
class arrivals
{
public:
    explicit arrivals(subject& on) : on_(on) {}

    /// Returns once the acquire is in the queue, behind all earlier ones.
    void add(const locker& by, group_members keys)
    {
        const auto waiting = [&] { return by.stats().waiting; };
        const auto before = waiting();
        all_.push_back(testing::start(on_.io(), take(by, std::move(keys), static_cast<int>(all_.size()))));
        pass_slowly_until(on_, [&] { return waiting() > before; });
    }
    [[nodiscard]] std::vector<int> get()
    {
        for (auto& each : all_)
            each.get(on_.io());
        return order_;
    }
    [[nodiscard]] std::vector<int> expected() const
    {
        std::vector<int> numbers(all_.size());
        std::iota(numbers.begin(), numbers.end(), 0);
        return numbers;
    }

private:
    asio::awaitable<void> take(locker by, group_members keys, int number)
    {
        auto group = co_await by.acquire_all(std::move(keys));
        order_.push_back(number);
        co_await group.release();
    }

    subject& on_;
    std::vector<testing::running<void>> all_;
    std::vector<int> order_;
};

} // namespace

COLOCK_CONTRACT_CASE(locker, groups_and_singles_of_a_locker_are_served_in_arrival_order)
{
    const auto mine = on.make_locker();
    auto blocker = run_coro(on.io(), mine.acquire("a"));
    arrivals came(on);
    for (int n = 0; n < 8; ++n) {
        came.add(mine, {"a", "b", "c"});
        if (n % 2)
            came.add(mine, {"a"});
        else if (on.able().shared)
            came.add(mine, {"a", {"b", lock_mode::shared}});
    }
    run_coro(on.io(), blocker.release(on_failure::raise));
    BOOST_TEST(came.get() == came.expected(), boost::test_tools::per_element());
}

COLOCK_CONTRACT_CASE(locker, groups_of_several_lockers_are_served_in_arrival_order, &capabilities::fifo)
{
    const auto holder = on.make_locker();
    auto blocker = run_coro(on.io(), holder.acquire("a"));
    // Of the callers of one locker, only the first is in the backend's queue.
    std::vector<colock::locker> lockers;
    arrivals came(on);
    for (int n = 0; n < 4; ++n) {
        for (const auto& by : {on.make_locker(), on.make_other_locker()}) {
            lockers.push_back(by);
            came.add(by, {"a", "b"});
        }
    }
    run_coro(on.io(), blocker.release(on_failure::raise));
    BOOST_TEST(came.get() == came.expected(), boost::test_tools::per_element());
}

COLOCK_CONTRACT_CASE(locker, streams_of_singles_do_not_starve_a_group)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    bool stop = false;
    const auto stream = [&](locker by, const char* key) -> asio::awaitable<void> {
        while (!stop) {
            auto held = co_await by.acquire(key);
            co_await asio::post(asio::deferred);
            co_await held.release();
        }
    };
    // If only the callers of one locker are ordered, the streams use the same locker.
    const auto& by = on.able().fifo ? other : mine;
    std::vector<testing::running<void>> streams;
    for (const auto* key : {"a", "b"})
        streams.push_back(testing::start(on.io(), stream(by, key)));
    for (int n = 0; n < 3; ++n) {
        auto waiting = testing::start(on.io(), mine.acquire_all(strings{"a", "b"}));
        pass_slowly_until(on, [&] { return waiting.done(); });
        auto group = waiting.get(on.io());
        BOOST_TEST(group.held());
        run_coro(on.io(), group.release());
    }
    stop = true;
    for (auto& each : streams)
        each.get(on.io());
}

COLOCK_CONTRACT_CASE(locker, group_that_gives_up_releases_everything)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("c"));
    BOOST_TEST((failure_of<retry_error>(on, mine.acquire_all(strings{"a", "b", "c"},
                                                {.retry = retry_policy::never()})) == errc::retry_exhausted));
    for (const auto* key : {"a", "b"}) {
        auto lock = run_coro(on.io(), other.acquire(key));
        run_coro(on.io(), lock.release(on_failure::raise));
    }
    run_coro(on.io(), blocker.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, groups_in_opposite_orders_do_not_deadlock)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const auto work = [](colock::locker by, strings keys) -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            auto group = co_await by.acquire_all(keys);
            BOOST_TEST(group.held());
            co_await group.release();
        }
    };
    auto first = testing::start(on.io(), work(mine, {"a", "b"}));
    auto second = testing::start(on.io(), work(other, {"b", "a"}));
    for (int i = 0; i < 200 && !(first.done() && second.done()); ++i)
        on.pass_time(on.short_ttl() / 20);
    first.get(on.io());
    second.get(on.io());
}

COLOCK_CONTRACT_CASE(locker, many_groups_of_random_keys_do_not_deadlock)
{
    constexpr int lists = 1000;
    constexpr std::size_t crowd = 64;
    const auto mine = on.make_locker(), other = on.make_other_locker();
    std::mt19937 random(7);
    std::map<std::string, int> holders;
    int begun = 0;
    std::size_t ended = 0;
    const auto random_keys = [&] {
        strings keys;
        for (auto left = 2 + random() % 4; left > 0; --left)
            keys.push_back("k" + std::to_string(random() % 20));
        return keys;
    };
    const auto work = [&](const locker& by) -> asio::awaitable<void> {
        while (begun++ < lists) {
            auto group = co_await by.acquire_all(random_keys());
            BOOST_TEST(group.held());
            for (const auto& each : group.locks())
                BOOST_TEST(++holders[each.key()] == 1);
            co_await asio::post(asio::deferred);
            for (const auto& each : group.locks())
                --holders[each.key()];
            co_await group.release();
        }
        ++ended;
    };
    std::vector<testing::running<void>> all;
    for (std::size_t n = 0; n < crowd; ++n)
        all.push_back(testing::start(on.io(), work(n % 2 ? mine : other)));
    for (int i = 0; i < 20'000 && ended < crowd; ++i)
        on.pass_time(on.short_ttl() / 50);
    BOOST_TEST_REQUIRE(ended == crowd, ended << " of " << crowd << " have ended");
    for (auto& each : all)
        each.get(on.io());
}

COLOCK_CONTRACT_CASE(locker, lists_with_both_modes_in_opposite_orders_do_not_deadlock, &capabilities::shared)
{
    constexpr int lists = 1000;
    constexpr std::size_t crowd = 64;
    const auto mine = on.make_locker(), other = on.make_other_locker();
    std::mt19937 random(5);
    std::map<std::string, int> readers;
    int begun = 0;
    std::size_t ended = 0;
    const auto random_members = [&](bool backwards) {
        std::vector<group_member> members;
        for (const auto* key : {"a", "b", "c", "d", "e", "f"}) {
            if (random() % 3 == 0)
                members.emplace_back(key, random() % 3 ? lock_mode::shared : lock_mode::exclusive);
        }
        if (members.empty())
            members.emplace_back("a");
        if (backwards)
            std::ranges::reverse(members);
        return members;
    };
    const auto work = [&](const locker& by, bool backwards) -> asio::awaitable<void> {
        while (begun++ < lists) {
            auto group = co_await by.acquire_all(random_members(backwards));
            BOOST_TEST(group.held());
            for (const auto& each : group.locks()) {
                const bool alone = each.mode() == lock_mode::exclusive;
                BOOST_TEST((alone ? readers[each.key()] == 0 : readers[each.key()] >= 0));
                readers[each.key()] += alone ? -1000 : 1;
            }
            co_await asio::post(asio::deferred);
            for (const auto& each : group.locks())
                readers[each.key()] -= each.mode() == lock_mode::exclusive ? -1000 : 1;
            co_await group.release();
        }
        ++ended;
    };
    std::vector<testing::running<void>> all;
    for (std::size_t n = 0; n < crowd; ++n)
        all.push_back(testing::start(on.io(), work(n % 2 ? mine : other, n % 2 == 0)));
    for (int i = 0; i < 20'000 && ended < crowd; ++i)
        on.pass_time(on.short_ttl() / 50);
    BOOST_TEST_REQUIRE(ended == crowd, ended << " of " << crowd << " have ended");
    for (auto& each : all)
        each.get(on.io());
}

// Groups by their id.

COLOCK_CONTRACT_CASE(locker, a_group_is_released_by_another_process_that_knows_its_id, &capabilities::groups)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group("order 7");
    BOOST_TEST(group.id() == "order 7");
    run_coro(on.io(), group.acquire("a", {.owner = "me", .comment = "why"}));
    run_coro(on.io(), group.acquire("b", {.ttl = on.short_ttl(), .renewal = renewal::automatic}));
    const auto alone = run_coro(on.io(), mine.acquire("c"));
    auto lost = testing::start(on.io(), group.locks()[1].lost());
    auto waiting = testing::start(on.io(), other.acquire("a"));
    on.pass_time(1ms);
    auto theirs = other.group("order 7");
    BOOST_TEST(theirs.empty());
    auto reports = run_coro(on.io(), theirs.release());
    std::ranges::sort(reports, {}, &lock_report::key);
    BOOST_TEST_REQUIRE(reports.size() == 2U);
    BOOST_TEST(reports[0].key == "a");
    BOOST_TEST(reports[1].key == "b");
    for (const auto& report : reports) {
        BOOST_TEST(!report.status);
        BOOST_TEST(report.before.key == report.key);
        BOOST_TEST(report.before.group == "order 7");
    }
    BOOST_TEST(reports[0].before.owner == "me");
    BOOST_TEST(reports[0].before.comment == "why");
    auto next = waiting.get(on.io());
    pass_slowly_until(on, [&] { return lost.done(); });
    const auto reason = lost.get(on.io());
    BOOST_TEST((reason == lost_reason::broken || reason == lost_reason::taken));
    BOOST_TEST(alone.held());
    BOOST_TEST(!group.held());
    BOOST_TEST(run_coro(on.io(), theirs.release()).empty());
    // Locks that others hold by now are not touched.
    for (const auto& report : run_coro(on.io(), group.release()))
        BOOST_TEST((report.status == errc::not_held));
    BOOST_TEST(run_coro(on.io(), next.is_locked()));
    run_coro(on.io(), next.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, group_by_id_is_reported_newest_first, &capabilities::groups)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group("g");
    for (const char* const key : {"3", "1", "4", "5", "2"}) {
        run_coro(on.io(), group.acquire(key));
        // The distance exceeds the resolution of every backend's clock.
        on.pass_time(2ms);
    }
    std::string order;
    for (const auto& report : run_coro(on.io(), other.group("g").release()))
        order += report.key;
    BOOST_TEST(order == "25413");
}

COLOCK_CONTRACT_CASE(locker, group_by_id_releases_own_locks_before_those_of_others, &capabilities::groups)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group("g"), elsewhere = mine.group("g"), theirs = other.group("g");
    run_coro(on.io(), theirs.acquire("a"));
    run_coro(on.io(), elsewhere.acquire("b"));
    run_coro(on.io(), group.acquire("c"));
    run_coro(on.io(), group.acquire("d"));
    auto lost = testing::start(on.io(), elsewhere.locks()[0].lost());
    on.pass_time(1ms);
    auto reports = run_coro(on.io(), group.release());
    BOOST_TEST_REQUIRE(reports.size() == 4U);
    BOOST_TEST(reports[0].key == "d");
    BOOST_TEST(reports[1].key == "c");
    BOOST_TEST(reports[0].before.group == "g");
    BOOST_TEST(!reports[0].before.owner.empty());
    BOOST_TEST(reports[0].before.fence != 0U);
    std::ranges::sort(reports, {}, &lock_report::key);
    BOOST_TEST(reports[0].key == "a");
    BOOST_TEST(reports[1].key == "b");
    for (const auto& report : reports)
        BOOST_TEST(!report.status);
    // Another handle of the same locker is notified at once.
    BOOST_TEST(!elsewhere.held());
    BOOST_TEST(lost.get(on.io()) == lost_reason::broken);
    for (const auto* key : {"a", "b", "c", "d"})
        BOOST_TEST(!is_taken(on, other, key));
    BOOST_TEST((run_coro(on.io(), theirs.release()).at(0).status == errc::not_held));
    BOOST_TEST((run_coro(on.io(), elsewhere.release()).at(0).status == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, group_without_a_given_id_affects_only_its_own_locks, &capabilities::groups)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group();
    run_coro(on.io(), group.acquire("a"));
    auto known = other.group(group.id());
    run_coro(on.io(), known.acquire("b"));
    BOOST_TEST(run_coro(on.io(), group.release()).size() == 1U);
    BOOST_TEST(known.held());
    // The locks of an acquire_all are reached in the same way.
    auto several = run_coro(on.io(), mine.acquire_all({"c", "d"}));
    BOOST_TEST(run_coro(on.io(), other.group(several.id()).release()).size() == 2U);
    for (const auto& report : run_coro(on.io(), several.release()))
        BOOST_TEST((report.status == errc::not_held));
    lock_group moved;
    moved = std::move(known);
    run_coro(on.io(), mine.group(moved.id()).release());
    BOOST_TEST((run_coro(on.io(), moved.release()).at(0).status == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, lock_extended_by_its_groups_id_is_released_by_its_handle, &capabilities::extends_groups)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group("g");
    run_coro(on.io(), group.acquire("a", {.ttl = on.short_ttl()}));
    BOOST_TEST(run_coro(on.io(), other.group("g").extend(1h)).size() == 1U);
    pass_slowly(on, on.short_ttl() * 3 / 2);
    BOOST_TEST(!group.held());
    BOOST_TEST(!is_taken(on, other, "a"));
}

COLOCK_CONTRACT_CASE(
    locker, group_by_id_extends_own_locks_and_those_of_others, &capabilities::extends_groups, &capabilities::list)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group("g"), theirs = other.group("g");
    BOOST_TEST((failure_of<extend_error>(on, group.extend(1h)) == errc::not_held));
    run_coro(on.io(), theirs.acquire("a", {.ttl = 1min}));
    run_coro(on.io(), group.acquire("b", {.ttl = 1min}));
    run_coro(on.io(), group.acquire("c", {.ttl = 1min}));
    const auto reports = run_coro(on.io(), group.extend(1h));
    BOOST_TEST_REQUIRE(reports.size() == 3U);
    BOOST_TEST(reports[0].key == "c");
    BOOST_TEST(reports[1].key == "b");
    BOOST_TEST(reports[2].key == "a");
    for (const auto& report : reports) {
        BOOST_TEST(!report.status);
        BOOST_TEST((report.before.remaining && *report.before.remaining <= 1min));
    }
    for (const auto& lock : group.locks()) {
        BOOST_TEST((lock.ttl() == 1h));
        BOOST_TEST((lock.expires_at() > lease_clock::now() + 50min));
    }
    // The handle does not know of the extension, and uses its own clock.
    BOOST_TEST((theirs.locks()[0].ttl() == 1min));
    for (const auto& status : run_coro(on.io(), mine.list({.group = "g"})))
        BOOST_TEST((*status.remaining > 50min));
    // The group may shorten the locks of its own handle.
    run_coro(on.io(), group.extend(30min));
    for (const auto& status : run_coro(on.io(), mine.list({.group = "g"})))
        BOOST_TEST((*status.remaining > 40min) == (status.key == "a"));
    for (const auto& lock : group.locks())
        BOOST_TEST((lock.expires_at() <= lease_clock::now() + 30min));
    // A lock that is gone is reported.
    run_coro(on.io(), other.break_lock("b"));
    const auto partial = run_coro(on.io(), group.extend(1h));
    BOOST_TEST_REQUIRE(partial.size() == 3U);
    BOOST_TEST((partial[1].key == "b" && partial[1].status == errc::not_held));
    BOOST_TEST(!partial[0].status);
    run_coro(on.io(), group.release());
    BOOST_TEST((failure_of<extend_error>(on, mine.group("g").extend(1h)) == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, a_group_with_a_member_without_ttl_is_not_extended, &capabilities::extends_groups,
    &capabilities::no_ttl, &capabilities::list)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = mine.group("g"), theirs = other.group("g");
    run_coro(on.io(), theirs.acquire("a", {.ttl = 0ms}));
    run_coro(on.io(), group.acquire("b", {.ttl = 1min}));
    BOOST_TEST((failure_of<validation_error>(on, group.extend(1h)) == errc::invalid_ttl));
    BOOST_TEST((failure_of<validation_error>(on, group.extend(0ms)) == errc::invalid_ttl));
    BOOST_TEST((failure_of<validation_error>(on, mine.group("h").extend(-1ms)) == errc::invalid_ttl));
    BOOST_TEST((group.locks()[0].ttl() == 1min));
    BOOST_TEST((*run_coro(on.io(), mine.list({.key = "b"})).at(0).remaining <= 1min));
    run_coro(on.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, the_global_lock_is_one_lock)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = run_coro(on.io(), mine.acquire_global());
    BOOST_TEST(group.held());
    BOOST_TEST(is_taken(on, other, locker::global_key));
    BOOST_TEST(
        (failure_of<retry_error>(on, other.acquire_global({.retry = retry_policy::never()})) == errc::retry_exhausted));
    auto lock = run_coro(on.io(), other.try_acquire("k"));
    BOOST_TEST(lock.has_value());
    run_coro(on.io(), group.release());
}

} // namespace colock::contract
