// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/exit_of_child.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// State of ten processes that race for a key in each round. All of them start a round at the same moment.
struct race
{
    static constexpr int rounds = 20;

    std::array<shared_event, 10> for_runner{};
    shared_event for_starter{};
    std::atomic<int> round{-1};
    std::atomic<int> done{0};
    std::array<std::atomic<int>, rounds> grants{};
};

void run_race(const mongo::options& options, race& shared, std::size_t self)
{
    asio::io_context io;
    const locker by(mongo::make_adapter(io.get_executor(), options));
    run_coro(io, run_coro(io, by.acquire("warm " + std::to_string(self))).release(on_failure::raise));
    std::vector<lock> held;
    for (int round = 0;; ++round) {
        ++shared.done;
        shared.for_starter.notify();
        if (!shared.for_runner.at(self).wait_until([&] { return shared.round >= round; }))
            throw std::runtime_error("nobody gave the start");
        if (round == race::rounds)
            break;
        if (auto got = run_coro(io, by.try_acquire("k" + std::to_string(round)))) {
            ++shared.grants.at(static_cast<std::size_t>(round));
            held.push_back(std::move(*got));
        }
    }
    for (auto& each : held)
        run_coro(io, each.release(on_failure::raise));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_processes, mongo_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(many_processes_create_the_same_new_key_at_once_and_one_is_granted,
    *boost::unit_test::precondition(may_fork_with_fibers))
{
    const in_shared_memory<race> shared;
    auto how = options();
    how.operation_timeout = 20s;
    std::vector<pid_t> children;
    for (std::size_t i = 0; i < shared->for_runner.size(); ++i)
        children.push_back(in_child([&, i] { run_race(how, *shared.operator->(), i); }));
    const auto all = static_cast<int>(children.size());
    // The last round only ends the processes. They hold their locks until then.
    for (int round = 0; round <= race::rounds; ++round) {
        BOOST_TEST(shared->for_starter.wait_until([&] { return shared->done >= all * (round + 1); }));
        shared->round = round;
        for (auto& each : shared->for_runner)
            each.notify();
    }
    for (const auto each : children)
        BOOST_TEST(wait_for(each) == 0);
    for (const auto& each : shared->grants)
        BOOST_TEST(each == 1);
    BOOST_TEST(holders_at(server->port()).empty());
}

BOOST_AUTO_TEST_CASE(exit_of_a_child_does_the_parent_no_harm, *boost::unit_test::precondition(may_fork_with_fibers))
{
    check_exit_of_child(
        [&](const asio::any_io_executor& executor) { return mongo::make_adapter(executor, options()); }, 4s);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
