// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace colock::testing {

using namespace std::chrono_literals;

/// Acquires a lock and detaches it. Returns its ticket.
inline std::string detach_new_lock(virtual_fixture& env, std::string key = "k", acquire_options options = {.ttl = 10h})
{
    auto held = env.acquire(std::move(key), std::move(options));
    return env.run(held.detach());
}

/// Breaks the one stored lock, which nobody holds here any more.
inline void break_stored_lock(virtual_fixture& env)
{
    std::size_t broken = 0;
    env.memory->start_listing({.action = listing_action::break_key, .filter = {.key = "k"}},
        [&](const list_outcome& outcome) { broken = outcome.locks.size(); });
    BOOST_TEST(broken == 1U);
    BOOST_TEST(env.stored().empty());
}

} // namespace colock::testing
