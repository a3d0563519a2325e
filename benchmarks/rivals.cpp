// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "rivals.hpp"

#include "alternation.hpp"
#include "statistics.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <stdexcept>

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
    if (of.begins)
        timer.expires_after(*of.begins - std::chrono::system_clock::now());
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

std::optional<race> race_at(std::string_view scheme, std::string_view url)
{
    const auto start = scheme.size() + 3;
    const auto colon = url.rfind(':');
    if (!url.starts_with(std::string(scheme) + "://") || colon < start || url.find_first_of("@/?,", start) != url.npos)
        return std::nullopt;
    return race{.host = std::string(url.substr(start, colon - start)), .port = std::string(url.substr(colon + 1))};
}

race race_of(std::string_view scheme, const options& settings)
{
    auto of = race_at(scheme, settings.backend);
    if (!of)
        throw std::invalid_argument("races need --backend " + std::string(scheme) + "://HOST:PORT");
    of->time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9));
    if (settings.begins > 0)
        of->begins = std::chrono::system_clock::from_time_t(settings.begins);
    return *of;
}

rate run_workers(asio::io_context& io, const race& of, const worker& each)
{
    rate found;
    run_until_done(io, keep(count_workers(of, each), found));
    return found;
}

} // namespace bench
