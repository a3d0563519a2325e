// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/print.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>
#include <colock/testing/history.hpp>
#include <colock/testing/virtual_clock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct history_fixture
{
    virtual_clock clock;
    asio::io_context io;
    testing::history history;
    std::shared_ptr<adapter> store = memory::make_adapter(io.get_executor());
    locker mine{store};
    locker theirs{store};

    /// Returns the first line of the check, which is the first violation.
    [[nodiscard]] std::string first_violation() const
    {
        const std::string found = history.check();
        return found.substr(0, found.find('\n'));
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(testing_history, history_fixture)

BOOST_AUTO_TEST_CASE(empty_history_has_no_violation)
{
    BOOST_TEST(history.check() == "");
    BOOST_TEST(history.text() == "");
}

BOOST_AUTO_TEST_CASE(work_in_turn_has_no_violation)
{
    for (const locker& each : {mine, theirs, mine}) {
        lock held = clock.run(io, each.acquire("stock"));
        static_cast<void>(history.begin_work(held));
        const auto work = history.begin_work(held);
        clock.run(io, held.extend(10s));
    }
    BOOST_TEST(history.check() == "");
}

BOOST_AUTO_TEST_CASE(overlap_is_a_violation)
{
    const auto first = history.begin_work("stock");
    const auto second = history.begin_work("stock");
    BOOST_TEST(first_violation() == "stock: work 2 begins before work 1 has ended");
}

BOOST_AUTO_TEST_CASE(work_on_other_resources_may_overlap)
{
    const auto first = history.begin_work("stock");
    const auto second = history.begin_work("orders");
    BOOST_TEST(history.check() == "");
}

BOOST_AUTO_TEST_CASE(shared_work_may_overlap_only_shared_work)
{
    const auto first = history.begin_work("stock", 1, lock_mode::shared);
    const auto second = history.begin_work("stock", 2, lock_mode::shared);
    BOOST_TEST(history.check() == "");
    const auto third = history.begin_work("stock", 3);
    BOOST_TEST(first_violation() == "stock: work 3 (fence 3) begins before work 1 (fence 1) has ended");
}

BOOST_AUTO_TEST_CASE(lower_fence_is_a_violation)
{
    static_cast<void>(history.begin_work("stock", 7));
    static_cast<void>(history.begin_work("stock", 7));
    BOOST_TEST(history.check() == "");
    static_cast<void>(history.begin_work("stock", 6));
    BOOST_TEST(first_violation() == "stock: work 3 (fence 6) begins after work 1 (fence 7), which has a higher fence");
}

BOOST_AUTO_TEST_CASE(fences_of_shared_work_may_fall_but_not_below_exclusive_work)
{
    static_cast<void>(history.begin_work("stock", 5));
    static_cast<void>(history.begin_work("stock", 7, lock_mode::shared));
    static_cast<void>(history.begin_work("stock", 6, lock_mode::shared));
    BOOST_TEST(history.check() == "");
    static_cast<void>(history.begin_work("stock", 4, lock_mode::shared));
    BOOST_TEST(first_violation() == "stock: work 4 (fence 4) begins after work 1 (fence 5), which has a higher fence");
}

BOOST_AUTO_TEST_CASE(fence_that_is_not_known_is_not_compared)
{
    static_cast<void>(history.begin_work("stock", 7));
    static_cast<void>(history.begin_work("stock"));
    static_cast<void>(history.begin_work("stock", 7));
    BOOST_TEST(history.check() == "");
}

BOOST_AUTO_TEST_CASE(work_after_a_release_is_a_violation)
{
    lock held = clock.run(io, mine.acquire("stock"));
    clock.run(io, held.release());
    static_cast<void>(history.begin_work(held));
    BOOST_TEST(first_violation() ==
               "stock: work 1 (fence " + std::to_string(held.fence()) + ") begins although its lock is not held");
}

BOOST_AUTO_TEST_CASE(work_after_a_loss_is_a_violation_and_the_history_is_part_of_the_message)
{
    lock held = clock.run(io, mine.acquire("stock"));
    const std::string fence = std::to_string(held.fence());
    clock.advance(io, 31s);
    static_cast<void>(history.begin_work(held));
    BOOST_TEST(first_violation() == "stock: work 1 (fence " + fence + ") begins although its lock is not held");
    const std::string found = history.check();
    BOOST_TEST(found.find(" s  stock: work 1 (fence " + fence + ") begins\n") != found.npos, found);
    BOOST_TEST(found.find(" s  stock: work 1 (fence " + fence + ") ends\n") != found.npos, found);
    const auto begins = found.find('\n') + 1;
    BOOST_TEST(std::stod(found.substr(begins)) >= 31.0, found);
    BOOST_TEST(std::stod(found.substr(begins)) < 300.0, found);
}

BOOST_AUTO_TEST_CASE(loss_of_another_process_is_no_violation)
{
    const lock lost = clock.run(io, theirs.acquire("stock"));
    clock.advance(io, 31s);
    const lock held = clock.run(io, mine.acquire("stock"));
    static_cast<void>(history.begin_work(held));
    BOOST_TEST(history.check() == "");
}

BOOST_AUTO_TEST_CASE(moved_work_ends_once)
{
    auto work = history.begin_work("stock");
    {
        const auto moved = std::move(work);
        BOOST_TEST(history.text().find("ends") == std::string::npos);
    }
    const std::string text = history.text();
    BOOST_TEST(text.find("ends") == text.rfind("ends"));
    BOOST_TEST(text.find("ends") != text.npos);
}

BOOST_AUTO_TEST_SUITE_END()
