// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/fence_gate.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(fence_gates)

BOOST_AUTO_TEST_CASE(holder_is_admitted_until_a_later_holder_has_written)
{
    fence_gate gate;
    BOOST_TEST(gate.highest("k") == 0U);
    BOOST_TEST(gate.admit("k", 7));
    BOOST_TEST(gate.admit("k", 7));
    BOOST_TEST(gate.admit("k", 8));
    BOOST_TEST(!gate.admit("k", 7));
    BOOST_TEST(gate.highest("k") == 8U);
    BOOST_TEST(gate.admit("k", std::numeric_limits<std::uint64_t>::max()));
    BOOST_TEST(!gate.admit("k", std::numeric_limits<std::uint64_t>::max() - 1));
}

BOOST_AUTO_TEST_CASE(each_key_has_a_fence_of_its_own_until_it_is_forgotten)
{
    fence_gate gate;
    BOOST_TEST(gate.admit("a", 9));
    BOOST_TEST(gate.admit("b", 2));
    BOOST_TEST(gate.size() == 2U);
    gate.forget("a");
    gate.forget("never seen");
    BOOST_TEST(gate.size() == 1U);
    BOOST_TEST(gate.admit("a", 1));
    BOOST_TEST(!gate.admit("b", 1));
}

BOOST_AUTO_TEST_CASE(invalid_fence_is_refused)
{
    fence_gate gate;
    const auto refused = [&](const std::string& key, std::uint64_t fence) {
        const auto thrown = required_error<validation_error>([&] { static_cast<void>(gate.admit(key, fence)); });
        return thrown;
    };
    BOOST_TEST((refused("", 1).code() == errc::invalid_key));
    BOOST_TEST((refused("k", 0).code() == errc::invalid_options));
    BOOST_TEST(std::string(refused("k", 0).what()).find("does not number its grants") != std::string::npos);
    const lock none;
    BOOST_TEST(
        (thrown_by<validation_error>([&] { static_cast<void>(gate.admit(none)); })->code() == errc::invalid_key));
    BOOST_TEST(gate.size() == 0U);
}

BOOST_AUTO_TEST_CASE(holder_of_an_ended_lease_is_rejected_after_the_next_holder)
{
    virtual_fixture env;
    fence_gate gate;
    auto paused = env.run(env.locker->acquire("k", {.ttl = 1s}));
    BOOST_TEST(gate.admit(paused));
    env.advance(2s);
    auto next = env.run(env.locker->acquire("k"));
    BOOST_TEST(gate.admit(next));
    BOOST_TEST(!gate.admit(paused));
    BOOST_TEST(gate.admit(next));
}

BOOST_AUTO_TEST_CASE(no_thread_is_admitted_after_a_higher_fence)
{
    fence_gate gate;
    std::vector<std::thread> all;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
        all.emplace_back([&gate, thread] {
            for (std::uint64_t round = 1; round < 2000; ++round)
                static_cast<void>(gate.admit("k", round * 4 + thread));
        });
    }
    for (auto& each : all)
        each.join();
    BOOST_TEST(gate.highest("k") == 1999U * 4 + 3);
}

BOOST_AUTO_TEST_SUITE_END()
