// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "one_server.hpp"
#include "support/driver.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"
#include "zookeeper/recipe/names.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>

#include <sys/wait.h>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(zookeeper_faults, one_server)

BOOST_AUTO_TEST_CASE(a_lock_and_a_place_in_the_line_outlive_a_cut)
{
    auto& holds = add_linked(10s);
    auto& waits = add_linked(10s);
    auto held = run(holds.acquire("k"));
    auto first = queue(waits);
    auto last = queue(add());
    const auto stood = nodes();
    link.refuse(true);
    until([&] { return told->suspensions == 2; });
    BOOST_TEST(told->risks == 1);
    link.refuse(false);
    until([&] { return told->reconnections == 2; });
    run(held.extend(20s));
    BOOST_TEST(held.held());
    BOOST_TEST((nodes() == stood));
    run(held.release(on_failure::raise));
    auto next = first.get(io);
    BOOST_TEST(!last.done());
    run(next.release(on_failure::raise));
    run(last.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(what_is_released_while_a_waiter_is_cut_off_wakes_him_when_he_is_back)
{
    auto held = run(add().acquire("k"));
    auto waits = queue_patiently(add_linked(10s));
    link.refuse(true);
    until([&] { return told->suspensions == 1; });
    run(held.release(on_failure::raise));
    BOOST_TEST(!waits.done());
    link.refuse(false);
    run(waits.get(io).release(on_failure::raise));
    check_end();
}

/// A watch is asked for again at every reconnect, while the driver has the one from before. What stands in the way is
/// told to be there still: nobody has to look.
BOOST_AUTO_TEST_CASE(waiters_are_woken_after_many_reconnects_and_leave_nothing_behind)
{
    auto held = run(add().acquire("k"));
    auto& waits = add_linked(10s);
    std::vector<running<lock>> waiting;
    for (int i = 0; i < 20; ++i)
        waiting.push_back(start(io, waits.acquire("k", {.mode = lock_mode::shared, .retry = retry_policy::fixed(1h)})));
    until([&] { return waits.stats().busy == 20 && watches_at(server->port()) == 1; });
    for (int times = 1; times <= 5; ++times) {
        link.refuse(true);
        until([&] { return told->suspensions == times; });
        link.refuse(false);
        until([&] { return told->reconnections == times; });
        // Answered behind the watches.
        run(waits.is_locked("k"));
    }
    BOOST_TEST(waits.stats().busy == 20U);
    run(held.release(on_failure::raise));
    for (auto& each : waiting)
        run(each.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(a_lock_outlives_a_black_hole_that_is_shorter_than_its_session)
{
    auto& holds = add_linked(9s);
    auto held = run(holds.acquire("k"));
    auto waits = queue(add());
    link.silence(true);
    until([&] { return told->suspensions == 1; });
    link.silence(false);
    run(held.extend(20s));
    BOOST_TEST(held.held());
    BOOST_TEST(!waits.done());
    run(held.release(on_failure::raise));
    run(waits.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(who_holds_in_a_black_hole_hears_that_his_lock_is_lost_before_the_next_has_it)
{
    auto& holds = add_linked(2s);
    const auto held = run(holds.acquire("k"));
    seen.granted(held);
    auto hears = start(io, held.lost());
    auto waits = queue(add());
    link.silence(true);
    BOOST_TEST((hears.get(io) == lost_reason::session));
    BOOST_TEST(!waits.done());
    auto next = waits.get(io);
    seen.granted(next);
    seen.left(held);
    link.silence(false);
    run(next.release(on_failure::raise));
    seen.left(next);
    run(pass(holds, seen));
    check_end();
}

BOOST_AUTO_TEST_CASE(sessions_that_expire_at_the_server_leave_a_hundred_waiters_who_are_all_granted)
{
    std::vector<running<void>> waiting;
    const auto held = run(add().acquire("k"));
    seen.granted(held);
    auto hears = start(io, held.lost());
    for (int i = 0; i < 10; ++i) {
        auto& by = add();
        for (int j = 0; j < 10; ++j)
            waiting.push_back(start(io, pass(by, seen)));
    }
    until([&] { return nodes().size() == 11; });
    for (const auto each : sessions_of(server->port(), chroot()))
        end_session(server->port(), each);
    BOOST_TEST((hears.get(io) == lost_reason::session));
    until([&] { return seen.grants == 101; });
    for (auto& each : waiting)
        each.get(io);
    check_end();
}

BOOST_AUTO_TEST_CASE(a_waiter_whose_session_expires_stands_in_line_again_though_nothing_else_happens)
{
    auto held = run(add().acquire("k"));
    const auto of_holder = sessions_of(server->port(), chroot());
    auto waits = queue_patiently(add());
    const auto stood = nodes();
    for (const auto each : sessions_of(server->port(), chroot())) {
        if (each != of_holder.at(0))
            end_session(server->port(), each);
    }
    until([&] { return nodes().size() == 2 && nodes() != stood; });
    auto last = queue(add());
    run(held.release(on_failure::raise));
    auto next = waits.get(io);
    BOOST_TEST(!last.done());
    run(next.release(on_failure::raise));
    run(last.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_removed_over_and_over_is_in_nobodys_way)
{
    bool enough = false;
    auto working = start(io, pass_until(add(), seen, enough));
    // Counted by answers that may come until its session has been closed.
    int removed = 0;
    client vandal(server->port(), 6s, {.chroot = chroot()});
    vandal.connect();
    const auto folder = bucket_of("k") + "/k";
    // A server that writes slowly grants fewer.
    const auto long_enough = lease_clock::now() + 20s;
    // Between a folder's making and its first node, too.
    until([&] {
        vandal.talk->ask().remove(vandal.path(folder), [&](const reply& got) { removed += got.ok() ? 1 : 0; });
        run_ready(*vandal.io);
        return seen.grants > (lease_clock::now() < long_enough ? 500 : 10);
    });
    enough = true;
    working.get(io);
    BOOST_TEST(removed > 0);
    check_end();
}

BOOST_AUTO_TEST_CASE(locks_that_are_taken_together_stand_in_nobodys_way_if_some_fail)
{
    const auto all = add();
    std::map<std::string, std::uint64_t> fences;
    for (int i = 0; i < 40; ++i)
        fences["k" + std::to_string(i)] = 0;
    // The folders of some are gone, after all were there.
    for (int round = 0; round < 3; ++round) {
        std::vector<running<lock>> taken;
        for (const auto& [key, fence] : fences)
            taken.push_back(start(io, all.acquire(key)));
        for (auto& each : taken) {
            auto held = each.get(io);
            BOOST_TEST(held.fence() > std::exchange(fences[std::string(held.key())], held.fence()));
            BOOST_TEST(run(held.is_locked()));
            run(held.release(on_failure::raise));
        }
        // Each time another: while the locks are at work nobody runs it, for longer than its session where a server is
        // slow.
        client vandal(server->port(), 6s, {.chroot = chroot()});
        vandal.connect();
        for (const auto* const key : {"k3", "k11", "k12", "k30"})
            BOOST_TEST(vandal.remove(bucket_of(key) + '/' + key).ok());
    }
    // Nobody was told that his had failed.
    BOOST_TEST(all.stats().attempts == 3 * fences.size());
    check_end();
}

BOOST_AUTO_TEST_CASE(what_happens_to_the_node_before_his_lets_nobody_in_while_another_holds)
{
    auto held = run(add().acquire("k"));
    auto first = queue_patiently(add());
    run(held.extend(20s));
    // It watches again.
    until([&] { return watches_at(server->port()) == 1; });
    const auto before = nodes();
    auto second = queue_patiently(add());
    auto third = queue_patiently(add());
    client vandal(server->port(), 6s, {.chroot = chroot()});
    vandal.connect();
    for (const auto& each : nodes()) {
        if (std::ranges::find(before, each) == before.end()) {
            BOOST_TEST(vandal.remove(each.substr(chroot().size() + 1)).ok());
            break;
        }
    }
    run(held.extend(20s));
    for (const auto* each : {&first, &second, &third})
        BOOST_TEST(!each->done());
    run(held.release(on_failure::raise));
    auto next = first.get(io);
    BOOST_TEST(!second.done());
    BOOST_TEST(!third.done());
    run(next.release(on_failure::raise));
    // Whoever of the two lost his node stands behind the other now.
    until([&] { return second.done() || third.done(); });
    auto& last = second.done() ? third : second;
    next = (second.done() ? second : third).get(io);
    BOOST_TEST(!last.done());
    run(next.release(on_failure::raise));
    run(last.get(io).release(on_failure::raise));
    check_end();
}

/// Of a folder the answer to the watch says nothing of what was there before.
BOOST_AUTO_TEST_CASE(who_waits_for_any_of_several_looks_again_when_he_watches)
{
    const acquire_options alone{.mode = lock_mode::shared, .max_holders = 1, .retry = retry_policy::fixed(1h)};
    auto held = run(add().acquire("k", alone));
    auto& by = add_linked(10s);
    // It knows then that it is not alone there, and asks for the line with its node.
    for (int times = 0; times < 2; ++times)
        BOOST_TEST(!run(by.try_acquire("k", alone)));
    link.cut_at_bytes("/k/", loss::time);
    auto waits = start(io, by.acquire("k", alone));
    until([&] { return link.cuts() == 1 && nodes().size() == 2; });
    BOOST_TEST(run(add().is_locked("k")));
    run(held.release(on_failure::raise));
    link.deliver_replies();
    run(waits.get(io).release(on_failure::raise));
    check_end();
}

/// What he waited for has gone, and his own node, too.
BOOST_AUTO_TEST_CASE(who_was_cut_off_looks_whether_he_still_stands_there)
{
    auto held = run(add().acquire("k"));
    auto& cut_off = add_linked(20s);
    auto waits = queue_patiently(cut_off);
    link.refuse(true);
    until([&] { return told->suspensions == 1; });
    run(held.release(on_failure::raise));
    auto& other = add();
    BOOST_TEST(run(other.break_lock("k")).size() == 1U);
    auto taken = run(other.acquire("k"));
    link.refuse(false);
    until([&] { return told->reconnections == 1; });
    // Behind whatever the event has led to.
    for (int i = 0; i < 3; ++i)
        run(cut_off.is_locked("k"));
    BOOST_TEST(!waits.done());
    run(taken.release(on_failure::raise));
    run(waits.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(a_waiter_whose_node_is_removed_stands_in_line_again)
{
    auto held = run(add().acquire("k"));
    const auto before = nodes();
    auto waits = queue(add());
    client vandal(server->port(), 6s, {.chroot = chroot()});
    vandal.connect();
    for (const auto& each : nodes()) {
        if (std::ranges::find(before, each) == before.end())
            BOOST_TEST(vandal.remove(each.substr(chroot().size() + 1)).ok());
    }
    run(held.release(on_failure::raise));
    run(waits.get(io).release(on_failure::raise));
    check_end();
}

namespace {

struct sleepers_work
{
    std::atomic<std::uint64_t> fence{0};
    std::atomic<int> lines{0};
    std::atomic<bool> taken{false};
    /// Lines of work that were begun when another had the lock.
    std::atomic<int> late{0};
};

asio::awaitable<void> work_while_held(const lock& held, sleepers_work& on)
{
    asio::steady_timer pause(co_await asio::this_coro::executor);
    while (held.held()) {
        if (on.taken)
            ++on.late;
        ++on.lines;
        pause.expires_after(1ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(a_process_that_was_stopped_beyond_its_session_knows_at_once_that_its_lock_is_lost)
{
    const in_shared_memory<sleepers_work> shared;
    const auto sleeper = in_child([&] {
        locker_scene own(zookeeper_url(server->port()), [&] { return server->port(); });
        auto held = own.run(own.add(2s).acquire("k"));
        shared->fence = held.fence();
        auto hears = start(own.io, held.lost());
        own.run(work_while_held(held, *shared.operator->()));
        if (hears.get(own.io) != lost_reason::session)
            throw std::runtime_error("the loss was not told");
    });
    until([&] { return shared->lines > 10; });
    ::kill(sleeper, SIGSTOP);
    auto next = run(add().acquire("k"));
    BOOST_TEST(next.fence() > shared->fence.load());
    shared->taken = true;
    ::kill(sleeper, SIGCONT);
    BOOST_TEST(wait_for(sleeper) == 0);
    BOOST_TEST(shared->late.load() == 0);
    run(next.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(the_child_of_a_fork_has_a_session_of_its_own_and_nothing_else)
{
    auto& on = add();
    auto held = run(on.acquire("parent"));
    auto waiting = queue(add());
    io.notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        io.notify_fork(asio::execution_context::fork_child);
        if (held.held())
            throw std::runtime_error("the child holds what its parent holds");
        auto own = run(on.acquire("child"));
        run(held.release());
        run(own.release(on_failure::raise));
        // Whatever else the child might say is said before this is answered.
        if (!run(on.is_locked("parent")))
            throw std::runtime_error("the child has given back what is its parent's");
        run(on.shutdown(5s));
    });
    io.notify_fork(asio::execution_context::fork_parent);
    BOOST_TEST(wait_for(child) == 0);
    BOOST_TEST(held.held());
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    BOOST_TEST(on.stats().reconnects == 0u);
    check_end();
}

BOOST_AUTO_TEST_CASE(what_a_child_asks_for_is_its_own_wherever_its_parent_was)
{
    auto& on = add();
    run(run(on.acquire("warm")).release(on_failure::raise));
    for (int steps = 0; steps < 8; ++steps) {
        auto asked = start(io, on.acquire("parent"));
        for (int step = 0; step < steps; ++step)
            io.poll_one();
        io.notify_fork(asio::execution_context::fork_prepare);
        const auto child = in_child([&] {
            io.notify_fork(asio::execution_context::fork_child);
            run(run(on.acquire("child")).release(on_failure::raise));
            run(on.shutdown(5s));
        });
        io.notify_fork(asio::execution_context::fork_parent);
        BOOST_TEST(wait_for(child) == 0, "after " << steps << " steps");
        run(asked.get(io).release(on_failure::raise));
    }
    check_end();
}

BOOST_AUTO_TEST_CASE(child_of_a_fork_connects_while_its_parent_works)
{
    for (int round = 0; round < 5; ++round) {
        auto& on = add();
        bool stops = false;
        const auto work = [&](std::string key) -> asio::awaitable<void> {
            while (!stops) {
                auto held = co_await on.acquire(key);
                co_await held.release(on_failure::raise);
            }
        };
        std::vector<running<void>> working;
        for (int i = 0; i < 16; ++i)
            working.push_back(start(io, work("parent " + std::to_string(i))));
        const auto begun = lease_clock::now();
        until([&] { return lease_clock::now() - begun > 50ms; });
        io.notify_fork(asio::execution_context::fork_prepare);
        const auto child = in_child([&] {
            stops = true;
            io.notify_fork(asio::execution_context::fork_child);
            if (!run(on.try_acquire("child")))
                throw std::runtime_error("the child was not granted a lock that is free");
            run(on.shutdown(5s));
        });
        io.notify_fork(asio::execution_context::fork_parent);
        int status = 0;
        until([&] { return ::waitpid(child, &status, WNOHANG) == child; });
        BOOST_TEST(status == 0);
        stops = true;
        for (auto& each : working)
            each.get(io);
        run(on.shutdown(5s));
    }
    check_end();
}

BOOST_AUTO_TEST_CASE(the_context_is_done_soon_after_a_shutdown_that_the_server_does_not_answer)
{
    const locker by(make_adapter(options(10s, zookeeper_url(link.port()))), {.operation_timeout = 500ms});
    run(run(by.acquire("k")).release(on_failure::raise));
    link.silence(true);
    run(by.shutdown(300ms));
    io.restart();
    io.run_for(2s);
    BOOST_TEST(io.stopped());
    link.silence(false);
    check_end();
}

/// Whoever is cut off is told so in one handler.
BOOST_AUTO_TEST_CASE(of_many_that_are_asked_for_some_are_under_way_and_the_others_are_not_sent)
{
    constexpr std::size_t count = 3000;
    constexpr std::size_t most_under_way = 1024;
    auto limited = options(10s, zookeeper_url(link.port()));
    limited.operation_timeout = 60s;
    const auto backend = make_adapter(limited);
    const auto by = add(backend);
    run(run(by.acquire("k")).release(on_failure::raise));

    link.silence(true);
    std::size_t unanswered = 0, granted = 0;
    std::vector<claim_ptr> asked;
    for (std::size_t i = 0; i < count; ++i) {
        asked.push_back(driver::exclusive("k" + std::to_string(i)));
        asked.back()->set_sent(lease_clock::now());
        backend->start_create(asked.back(), [&](create_outcome outcome) {
            unanswered += outcome.error && outcome.error->code == errc::outcome_unknown ? 1 : 0;
            granted += outcome.status == create_status::granted ? 1 : 0;
        });
    }
    io.restart();
    io.run_for(300ms);
    link.refuse(true);
    until([&] { return unanswered > 0; });
    io.restart();
    io.run_for(100ms);
    BOOST_TEST(unanswered <= most_under_way);

    // Nor is anything left of those.
    link.silence(false);
    link.refuse(false);
    until([&] { return unanswered + granted == count; });
    std::size_t released = 0;
    for (const auto& each : asked)
        backend->start_abandon(each, [&](release_outcome) { ++released; });
    until([&] { return released == count; });
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
