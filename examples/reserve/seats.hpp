// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace asio = boost::asio;

enum class sale
{
    done,
    taken,
    stopped,
};

/// The reserved seats: one file for each seat, in a folder that several servers may share. It represents a database
/// without locks: a reservation reads and, after a delay, writes.
class seats
{
public:
    seats(std::filesystem::path folder, std::chrono::milliseconds time) : folder_(std::move(folder)), time_(time)
    {
        std::filesystem::create_directories(folder_);
    }

    asio::awaitable<sale> reserve(const std::string& seat, const colock::lock& lock) const
    {
        if (std::filesystem::exists(folder_ / seat))
            co_return sale::taken;
        co_await asio::steady_timer(co_await asio::this_coro::executor, time_).async_wait(asio::deferred);
        if (!lock.held())
            co_return sale::stopped;
        // A real database would store the highest fence, and refuse a write with a lower one.
        std::ofstream file(folder_ / seat);
        file << lock.fence() << '\n' << std::flush;
        co_return file ? sale::done : sale::stopped;
    }

private:
    std::filesystem::path folder_;
    std::chrono::milliseconds time_;
};
