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

constexpr std::string_view crowd_key = "crowd";

/// Lockers with connections of their own, and coroutines of theirs that wait for one key.
class crowd
{
public:
    crowd(const std::string& url, std::size_t lockers);
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;

    /// Takes the key for as long as the waiters of `gather` shall wait.
    void hold();
    /// \param ready whether the server knows of all that it shall know
    void gather(std::size_t waiters_of_each, const std::function<bool()>& ready);
    /// Each waiter has the lock in its turn, and waits anew, until so many releases have been made.
    void pass_on(std::uint64_t releases);
    /// Each waiter has the lock once more, and ends.
    void disperse();
    [[nodiscard]] std::uint64_t releases() const { return releases_; }

private:
    [[nodiscard]] std::size_t waiting() const;
    boost::asio::awaitable<void> wait_in_turn(colock::locker locker);
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
