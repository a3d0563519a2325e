// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "memory/store.hpp"
#include "support/driver.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

inline constexpr auto ttl = 10s;

struct memory_fixture
{
    virtual_clock clock;
    explicit memory_fixture(memory::options settings = {}) : env(io, memory::make_adapter(io.get_executor(), settings))
    {
    }

    /// Starts a wait; the result becomes true when it is woken.
    std::shared_ptr<bool> start_wait(const claim_ptr& claim)
    {
        auto is_woken = std::make_shared<bool>(false);
        env.backend().start_wait(claim, lease_clock::time_point::max(), [is_woken](wait_outcome) { *is_woken = true; });
        return is_woken;
    }

    /// Creates stale keys, whose claims are owned only by the store.
    std::vector<std::weak_ptr<const void>> make_stale(int count)
    {
        std::vector<std::weak_ptr<const void>> watches;
        for (int i = 0; i < count; ++i) {
            const auto claim = driver::exclusive("stale:" + std::to_string(i), ttl);
            env.grant(claim);
            watches.push_back(driver::watch(claim));
        }
        virtual_clock::skip(2 * ttl);
        return watches;
    }
    static std::ptrdiff_t destroyed_count(const std::vector<std::weak_ptr<const void>>& watches)
    {
        return std::ranges::count_if(watches, [](const auto& watch) { return watch.expired(); });
    }

    asio::io_context io;
    driver env;
};

} // namespace colock::testing
