// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "one_server.hpp"
#include "zookeeper/layout/key_encoding.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

const acquire_options shared{.ttl = 0ms, .mode = lock_mode::shared};
const acquire_options one_place{.ttl = 0ms, .mode = lock_mode::shared, .max_holders = 1};

[[nodiscard]] acquire_options with_poll(acquire_options options, std::chrono::milliseconds interval)
{
    options.retry = retry_policy::fixed(interval).jitter(0.0);
    return options;
}

/// Waiters behind a link, and an administrator who changes the nodes at the server.
struct waiter_fixture : one_server
{
    waiter_fixture() : administrator(server->port(), 6s, {.chroot = chroot()}) { administrator.connect(); }

    /// Starts an acquire behind the link, and returns when it waits for an event.
    running<lock> start_waiter(locker& by, const acquire_options& options)
    {
        const auto before = nodes().size();
        auto waiting = start(io, by.acquire("k", options));
        until([&] { return nodes().size() == before + 1 && by.stats().waiting == 1; });
        run_for(200ms);
        return waiting;
    }
    void run_for(std::chrono::milliseconds time)
    {
        const auto begin = std::chrono::steady_clock::now();
        until([&] { return std::chrono::steady_clock::now() - begin > time; });
    }
    /// Removes a node that belongs to another session.
    void remove(const std::string& path)
    {
        const auto name = path.substr(chroot().size() + 1);
        BOOST_TEST(administrator.remove(name).ok());
    }
    /// Returns the only node that is not in `before`.
    [[nodiscard]] std::string added_node(const std::vector<std::string>& before) const
    {
        auto now = nodes();
        std::erase_if(now, [&](const auto& each) { return std::ranges::find(before, each) != before.end(); });
        BOOST_TEST_REQUIRE(now.size() == 1U);
        return now.front();
    }

    client administrator;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_many_waiters, waiter_fixture)

BOOST_AUTO_TEST_CASE(waiter_whose_node_was_removed_enqueues_again)
{
    // A waiter for a semaphore is notified of each change of the folder.
    for (const auto& options : {with_poll({}, 200ms), with_poll(one_place, 1h)}) {
        auto held = run(add().acquire("k", options));
        const auto before = nodes();
        auto waiting = start_waiter(add_linked(10s), options);
        const auto own = added_node(before);
        remove(own);
        until([&] { return nodes().size() == 2; });
        BOOST_TEST(added_node(before) != own);
        BOOST_TEST(!waiting.done());
        run(held.release(on_failure::raise));
        run(waiting.get(io).release(on_failure::raise));
    }
}

BOOST_AUTO_TEST_CASE(waiter_is_granted_at_its_next_poll_after_the_watch_event_was_lost)
{
    int lost = 0;
    for (const auto& options : {acquire_options{}, one_place}) {
        auto held = run(add().acquire("k", options));
        const auto watched = options.max_holders == 0 ? nodes().front() : chroot() + '/' + bucket_of("k") + "/k";
        auto waiting = start_waiter(add_linked(10s), with_poll(options, 300ms));
        // At least one poll has found no change.
        run_for(500ms);
        link.lose_messages(watched);
        run(held.release(on_failure::raise));
        run(waiting.get(io).release(on_failure::raise));
        BOOST_TEST(link.messages_lost() == ++lost);
        BOOST_TEST(events->suspensions == 0);
    }
}

BOOST_AUTO_TEST_CASE(poll_of_a_waiter_does_not_list_the_folder)
{
    constexpr std::size_t others = 300;
    constexpr std::uint64_t bytes_per_node = 40;
    for (const auto& options : {acquire_options{}, one_place}) {
        auto held = run(add().acquire("k", options));
        std::vector<running<lock>> queue;
        const auto backend = make_adapter(locker_fixture::options());
        for (std::size_t i = 0; i < others; ++i)
            queue.push_back(start(io, add(backend).acquire("k", with_poll(options, 1h))));
        until([&] { return nodes().size() == others + 1; });
        auto polling = start_waiter(add_linked(10s), with_poll(options, 20ms));
        run_for(500ms);
        const auto before = link.bytes_from_server();
        run_for(1s);
        // The waiter has polled at least twenty times.
        until([&] { return link.bytes_from_server() - before > 20 * 50U; });
        const auto bytes = link.bytes_from_server() - before;
        BOOST_TEST(bytes < 4 * others * bytes_per_node);
        run(held.release());
        for (auto& each : queue)
            run(each.get(io).release());
        run(polling.get(io).release());
    }
}

BOOST_AUTO_TEST_CASE(poll_of_a_waiter_sends_nothing_while_changes_of_the_folder_cause_lists)
{
    constexpr std::size_t waiters = 10;
    auto held = run(add().acquire("k", one_place));
    auto& other = add();
    auto& by = add_linked(10s);
    std::vector<running<lock>> waiting;
    for (std::size_t i = 0; i < waiters; ++i)
        waiting.push_back(start(io, by.acquire("k", with_poll(one_place, 5ms))));
    until([&] { return nodes().size() == waiters + 1; });
    run_for(200ms);
    const auto bytes = link.bytes_from_server();
    const auto polls = by.stats().attempts;
    for (int i = 0; i < 5; ++i) {
        BOOST_TEST(!run(other.try_acquire("k", one_place)));
        run_for(200ms);
    }
    // The reply to a request whether a node exists has 92 bytes.
    BOOST_TEST(link.bytes_from_server() - bytes < (by.stats().attempts - polls) * 92 / 2);
    run(held.release());
    for (auto& each : waiting)
        run(each.get(io).release());
}

BOOST_AUTO_TEST_CASE(readers_of_one_locker_share_lists_of_the_folder)
{
    constexpr std::size_t readers = 1000;
    constexpr std::uint64_t bytes_per_node = 45;
    auto held = run(add().acquire("k"));
    auto& by = add_linked(10s);
    std::vector<running<lock>> waiting;
    for (std::size_t i = 0; i < readers; ++i)
        waiting.push_back(start(io, by.acquire("k", with_poll(shared, 1h))));
    until([&] { return nodes().size() == readers + 1 && by.stats().waiting == readers; });
    run_for(500ms);
    // With a separate list for each reader, about half of readers * readers names would be sent.
    BOOST_TEST(link.bytes_from_server() < readers * readers / 8 * bytes_per_node);
    const auto before = link.bytes_from_server();
    run(held.release());
    std::vector<lock> all;
    for (auto& each : waiting)
        all.push_back(each.get(io));
    BOOST_TEST(std::ranges::all_of(all, &lock::held));
    BOOST_TEST(link.bytes_from_server() - before < readers * readers / 8 * bytes_per_node);
    for (auto& each : all)
        run(each.release());
}

BOOST_AUTO_TEST_CASE(readers_that_are_woken_together_share_a_list_although_not_all_requests_fit_in_flight)
{
    // Several times as many as requests may be in flight.
    constexpr std::size_t readers = 6000;
    constexpr std::uint64_t bytes_per_node = 45;
    auto held = run(add().acquire("k"));
    auto& by = add_linked(10s);
    std::vector<running<lock>> waiting;
    for (std::size_t i = 0; i < readers; ++i) {
        waiting.push_back(start(io, by.acquire("k", with_poll(shared, 1h))));
        if (i % 50 == 0)
            io.poll();
    }
    until([&] { return by.stats().waiting == readers; });
    run_for(500ms);
    const auto before = link.bytes_from_server();
    run(held.release());
    std::vector<lock> all;
    for (auto& each : waiting)
        all.push_back(each.get(io));
    BOOST_TEST(std::ranges::all_of(all, &lock::held));
    // Without recent lists, more than twenty lists are sent.
    BOOST_TEST(link.bytes_from_server() - before < 8 * readers * bytes_per_node);
}

BOOST_AUTO_TEST_CASE(release_of_a_semaphore_wakes_as_many_waiters_as_there_are_free_places)
{
    constexpr std::size_t waiters = 60;
    auto& by = add();
    auto held = run(by.acquire("k", one_place));
    std::vector<running<void>> waiting;
    for (std::size_t i = 0; i < waiters; ++i)
        waiting.push_back(start(io, [](locker of) -> asio::awaitable<void> {
            auto own = co_await of.acquire("k", with_poll(one_place, 1h));
            co_await own.release();
        }(by)));
    until([&] { return nodes().size() == waiters + 1 && by.stats().waiting == waiters; });
    run_for(300ms);
    const auto before = by.stats().attempts;
    run(held.release());
    for (auto& each : waiting)
        each.get(io);
    BOOST_TEST(by.stats().attempts - before <= 2 * waiters);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
