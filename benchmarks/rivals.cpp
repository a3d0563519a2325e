// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "rivals.hpp"

#include "alternation.hpp"
#include "statistics.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

asio::awaitable<rate> count_workers(const race& of, const worker& each)
{
    const auto executor = co_await asio::this_coro::executor;
    progress counted;
    std::exception_ptr failure;
    std::size_t running = of.in_flight;
    for (std::size_t number = 0; number < of.in_flight; ++number)
        asio::co_spawn(executor, each(counted, number), [&](std::exception_ptr thrown) {
            --running;
            if (thrown)
                failure = std::move(thrown);
        });
    asio::steady_timer timer(executor, of.warm_up());
    co_await timer.async_wait();
    const auto before = counted.pairs;
    counted.longest_turn = {};
    const auto start = std::chrono::steady_clock::now();
    const auto cpu = thread_cpu_time();
    timer.expires_after(of.time);
    co_await timer.async_wait();
    const auto pairs = static_cast<double>(counted.pairs - before);
    const auto used = static_cast<double>((thread_cpu_time() - cpu).count());
    const auto elapsed = static_cast<double>((std::chrono::steady_clock::now() - start).count());
    counted.stopping = true;
    while (running > 0) {
        timer.expires_after(1ms);
        co_await timer.async_wait();
    }
    if (failure)
        std::rethrow_exception(failure);
    co_return rate{pairs * 1e9 / elapsed, used / 1e3 / std::max(pairs, 1.0), static_cast<double>(counted.pairs),
        static_cast<double>(counted.longest_turn.count()) / 1e6};
}

asio::awaitable<void> keep(asio::awaitable<rate> counting, rate& found)
{
    found = co_await std::move(counting);
}

} // namespace

std::optional<race> race_at(std::string_view url)
{
    constexpr std::string_view scheme = "redis://";
    const auto colon = url.rfind(':');
    if (!url.starts_with(scheme) || colon < scheme.size() || url.find_first_of("@/?", scheme.size()) != url.npos)
        return std::nullopt;
    return race{.host = std::string(url.substr(scheme.size(), colon - scheme.size())),
        .port = std::string(url.substr(colon + 1))};
}

rate run_workers(asio::io_context& io, const race& of, const worker& each)
{
    rate found;
    run_until_done(io, keep(count_workers(of, each), found));
    return found;
}

} // namespace bench
