// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "growth.hpp"

#include "allocations.hpp"
#include "workload.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace asio = boost::asio;

namespace bench {
namespace {

/// Returns the number of open descriptors, including one for the folder that lists them.
std::size_t open_descriptors()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct usage
{
    std::size_t resident = 0;
    std::size_t descriptors = 0;

    static usage now() { return {.resident = resident_bytes(), .descriptors = open_descriptors()}; }
};

} // namespace

std::uint64_t growth_pairs(double seconds) noexcept
{
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(seconds * 500'000.0), 10'000, 1'000'000);
}

void measure_growth(asio::io_context& io, const colock::locker& locker, std::uint64_t pair_count, report& results)
{
    constexpr std::size_t in_flight = 64;
    std::uint64_t pairs = 0;
    usage early;
    usage late;
    std::size_t running = in_flight;
    const auto work = [&](std::size_t number) -> asio::awaitable<void> {
        for (std::size_t key = number; pairs < pair_count; key = (key + in_flight) % (in_flight * 100)) {
            colock::lock lock = co_await locker.acquire(workload::name(key));
            co_await lock.release();
            ++pairs;
            if (pairs == pair_count / 10)
                early = usage::now();
            if (pairs == pair_count)
                late = usage::now();
        }
        if (--running == 0)
            io.stop();
    };
    for (std::size_t number = 0; number < in_flight; ++number)
        asio::co_spawn(io, work(number), asio::detached);
    io.restart();
    io.run();

    results.begin("Growth over " + std::to_string(pair_count) + " pairs, " + std::to_string(in_flight) + " in flight");
    results.add({"resident set after a tenth of them", static_cast<double>(early.resident) / 1024.0, "KiB"});
    results.add({"after all of them, as a multiple",
        static_cast<double>(late.resident) / static_cast<double>(early.resident), "x", 1.05});
    results.add({"open descriptors after a tenth of them", static_cast<double>(early.descriptors), ""});
    results.add({"more after all of them",
        static_cast<double>(late.descriptors) - static_cast<double>(early.descriptors), "", 0.0, kind::counted});
}

} // namespace bench
