// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

/// Something to be timed: does its work so many times.
struct contender
{
    std::string name;
    std::function<boost::asio::awaitable<void>(std::size_t times)> work;
};

/// Times contenders against each other: slices of a few milliseconds in turn, round by round, so that whatever happens
/// to the machine happens to all of them. Returns the median of each one's nanoseconds of CPU time per work.
[[nodiscard]] std::vector<double> alternate(
    boost::asio::io_context& io, const std::vector<contender>& contenders, std::chrono::nanoseconds time);

/// Runs the context until the coroutine has ended; what else runs in it stays where it was.
void run_until_done(boost::asio::io_context& io, boost::asio::awaitable<void> work);

} // namespace bench
