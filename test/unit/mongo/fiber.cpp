// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/fiber.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace colock::mongo::detail;

BOOST_AUTO_TEST_SUITE(mongo_fiber)

BOOST_AUTO_TEST_CASE(fiber_continues_at_its_suspension)
{
    std::string order;
    std::unique_ptr<fiber> tested;
    tested = std::make_unique<fiber>([&] {
        order += 'b';
        tested->suspend();
        order += 'd';
    });
    order += 'a';
    tested->resume();
    BOOST_TEST(!tested->running());
    BOOST_TEST(!tested->ended());
    order += 'c';
    tested->resume();
    BOOST_TEST(tested->ended());
    BOOST_TEST(order == "abcd");
}

BOOST_AUTO_TEST_CASE(fiber_can_be_destroyed_before_its_first_resume)
{
    bool has_run = false;
    {
        const fiber unused([&] { has_run = true; });
    }
    BOOST_TEST(!has_run);
}

BOOST_AUTO_TEST_CASE(fiber_may_resume_another_fiber)
{
    std::string order;
    fiber inner([&] { order += "inner "; });
    fiber outer([&] {
        inner.resume();
        order += "outer";
    });
    outer.resume();
    BOOST_TEST(order == "inner outer");
}

BOOST_AUTO_TEST_CASE(exception_may_be_caught_inside_of_a_fiber)
{
    std::string caught;
    std::unique_ptr<fiber> tested;
    tested = std::make_unique<fiber>([&] {
        try {
            throw std::string("first");
        } catch (const std::string& what) {
            caught = what;
        }
        tested->suspend();
        try {
            throw std::string("second");
        } catch (const std::string& what) {
            caught = what;
        }
    });
    tested->resume();
    BOOST_TEST(caught == "first");
    tested->resume();
    BOOST_TEST(caught == "second");
}

BOOST_AUTO_TEST_CASE(another_thread_may_resume_a_fiber)
{
    int steps = 0;
    std::unique_ptr<fiber> tested;
    tested = std::make_unique<fiber>([&] {
        while (++steps < 10)
            tested->suspend();
    });
    while (!tested->ended())
        std::thread([&] { tested->resume(); }).join();
    BOOST_TEST(steps == 10);
}

BOOST_AUTO_TEST_CASE(thousand_fibers_are_resumed_in_turn)
{
    int damaged_count = 0;
    std::vector<std::unique_ptr<fiber>> all;
    for (int n = 0; n < 1000; ++n) {
        auto& made = all.emplace_back();
        made = std::make_unique<fiber>([&damaged_count, self = all.size() - 1, &all] {
            // The stack is used, and must keep its contents across the suspension.
            std::vector<char> heap(100, 'x');
            char local[4096];
            for (auto& each : local)
                each = static_cast<char>(self);
            all[self]->suspend();
            for (const auto& each : local)
                damaged_count += each == static_cast<char>(self) ? 0 : 1;
        });
    }
    for (int round = 0; round < 2; ++round) {
        for (const auto& each : all)
            each->resume();
    }
    BOOST_TEST(damaged_count == 0);
    for (const auto& each : all)
        BOOST_TEST(each->ended());
}

BOOST_AUTO_TEST_SUITE_END()
