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

/// A measured operation. `work` executes the operation the given number of times.
struct timed_operation
{
    std::string name;
    std::function<boost::asio::awaitable<void>(std::size_t times)> work;
};

/// Measures several operations in alternating slices of a few milliseconds, so that changes of the machine's load
/// affect all of them. Returns the median CPU time of each operation in nanoseconds.
[[nodiscard]] std::vector<double> alternate(
    boost::asio::io_context& io, const std::vector<timed_operation>& operations, std::chrono::nanoseconds time);

/// Runs the context until the coroutine has ended. Other work of the context is left as it is.
void run_until_done(boost::asio::io_context& io, boost::asio::awaitable<void> work);

} // namespace bench
