// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

constexpr std::string_view contended_key = "queue";

/// Lockers with their own connections, whose coroutines all wait for one key.
class contention
{
public:
    contention(const std::string& url, std::size_t lockers);
    contention(const contention&) = delete;
    contention& operator=(const contention&) = delete;

    /// Acquires the key, and holds it until pass_on() or finish().
    void hold();
    /// Starts the waiters. Returns when all of them wait and `ready` returns true.
    void start_waiters(std::size_t waiters_of_each, const std::function<bool()>& ready);
    /// Releases the key. The waiters acquire and release it in turn, until `releases` releases were made, and wait
    /// again in between.
    void pass_on(std::uint64_t releases);
    /// Releases the key. Each waiter acquires it once more and ends.
    void finish();
    [[nodiscard]] std::uint64_t releases() const { return releases_; }

private:
    [[nodiscard]] std::size_t waiting() const;
    boost::asio::awaitable<void> take_turns(colock::locker locker);
    void run_while(const std::function<bool()>& more);
    void run_for(std::chrono::milliseconds time);

    boost::asio::io_context io_{1};
    std::vector<colock::locker> lockers_;
    std::optional<colock::lock> held_;
    std::size_t running_ = 0;
    std::uint64_t releases_ = 0;
    std::uint64_t wanted_ = 0;
};

} // namespace bench
