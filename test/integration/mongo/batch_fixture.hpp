// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo_fixture.hpp"
#include "support/faulty_proxy.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

inline constexpr std::size_t key_count = 6;
/// Bytes at the start of the statements in a batched update, and at the start of the `find` command that follows.
inline const std::string statements_start = std::string("\x04updates\0", 9);
inline const std::string find_start = std::string("\x02"
                                                  "find\0",
    6);

/// A locker behind a proxy, and one without. The operations that `ours` starts in one handler are sent in batches of
/// several operations.
struct batch_fixture : mongo_fixture
{
    batch_fixture() { run(run(ours.acquire("warm")).release(on_failure::raise)); }

    /// Adds a locker with this operation timeout, which is connected through the proxy.
    locker add_with_timeout(std::chrono::milliseconds operation_timeout, std::size_t connections = 8)
    {
        auto how = options(mongodb_url(link.port()));
        how.operation_timeout = operation_timeout;
        how.connections = connections;
        auto made = add(how);
        run(run(made.acquire("warm")).release(on_failure::raise));
        return made;
    }
    static std::vector<std::string> keys()
    {
        std::vector<std::string> all;
        for (std::size_t i = 0; i < key_count; ++i)
            all.push_back(std::to_string(i));
        return all;
    }
    std::vector<running<lock>> start_acquires(const acquire_options& how = {})
    {
        std::vector<running<lock>> asked;
        for (const auto& key : keys())
            asked.push_back(start(io, ours.acquire(key, how)));
        return asked;
    }
    std::vector<lock> take_all(const acquire_options& how = {})
    {
        std::vector<lock> held;
        for (auto& each : start_acquires(how))
            held.push_back(each.get(io));
        return held;
    }
    std::vector<running<void>> start_releases(std::vector<lock>& held)
    {
        std::vector<running<void>> releases;
        for (auto& each : held)
            releases.push_back(start(io, each.release(on_failure::raise)));
        return releases;
    }
    void release_all(std::vector<lock>& held)
    {
        for (auto& each : start_releases(held))
            each.get(io);
    }
    /// Returns the number of acquires with an unknown outcome, after they are settled. The others are granted and
    /// released.
    std::size_t count_unknown(std::vector<running<lock>> asked) { return count_unknown(std::move(asked), ours); }
    std::size_t count_unknown(std::vector<running<lock>> asked, const locker& by)
    {
        std::size_t unknown = 0;
        std::vector<lock> held;
        for (auto& each : asked) {
            try {
                held.push_back(each.get(io));
            } catch (const create_error& failed) {
                BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
                ++unknown;
            }
        }
        until([&] { return by.stats().settling == 0; });
        BOOST_TEST(by.stats().unproven == 0U);
        BOOST_TEST(holders_at(server->port()).size() == held.size());
        release_all(held);
        return unknown;
    }
    void check_all_are_free()
    {
        BOOST_TEST(holders_at(server->port()).empty());
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            auto held = take_all({.mode = mode});
            BOOST_TEST(holders_at(server->port()).size() == key_count);
            release_all(held);
            BOOST_TEST(holders_at(server->port()).empty());
        }
    }

    faulty_proxy link{server->port()};
    const locker ours = add(options(mongodb_url(link.port())));
    const locker theirs = add();
};

} // namespace colock::testing
