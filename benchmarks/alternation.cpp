// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "alternation.hpp"

#include "statistics.hpp"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

std::chrono::nanoseconds measure_time(asio::io_context& io, const timed_operation& each, std::size_t times)
{
    const auto start = thread_cpu_time();
    run_until_done(io, each.work(times));
    return thread_cpu_time() - start;
}

/// Returns the number of repetitions for a slice that is long compared to the clock's resolution, and short compared to
/// the load changes of the machine.
std::size_t find_repetitions(asio::io_context& io, const timed_operation& each)
{
    for (std::size_t times = 16;; times *= 4) {
        const auto taken = measure_time(io, each, times);
        if (taken > 1ms || times > 10'000'000)
            return std::max<std::size_t>(1, times * 4'000 / static_cast<std::size_t>(taken / 1us + 1));
    }
}

} // namespace

void run_until_done(asio::io_context& io, asio::awaitable<void> work)
{
    std::exception_ptr failure;
    asio::co_spawn(io, std::move(work), [&](std::exception_ptr thrown) {
        failure = std::move(thrown);
        io.stop();
    });
    io.restart();
    io.run();
    if (failure)
        std::rethrow_exception(failure);
}

std::vector<double> alternate(
    asio::io_context& io, const std::vector<timed_operation>& operations, std::chrono::nanoseconds time)
{
    std::vector<std::size_t> slices;
    for (const timed_operation& each : operations)
        slices.push_back(find_repetitions(io, each));

    std::vector<std::vector<double>> costs(operations.size());
    const auto end = std::chrono::steady_clock::now() + time;
    do {
        for (std::size_t i = 0; i < operations.size(); ++i) {
            const auto taken = measure_time(io, operations[i], slices[i]);
            costs[i].push_back(static_cast<double>(taken.count()) / static_cast<double>(slices[i]));
        }
    } while (std::chrono::steady_clock::now() < end);

    std::vector<double> medians;
    for (std::vector<double>& each : costs)
        medians.push_back(median(std::move(each)));
    return medians;
}

} // namespace bench
