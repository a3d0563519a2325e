// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "workload.hpp"

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

asio::awaitable<rate> measure_workers(const workload& load, const worker& each)
{
    const auto executor = co_await asio::this_coro::executor;
    progress counted;
    std::exception_ptr failure;
    std::size_t running = load.in_flight;
    for (std::size_t number = 0; number < load.in_flight; ++number)
        asio::co_spawn(executor, each(counted, number), [&](std::exception_ptr thrown) {
            --running;
            if (thrown)
                failure = std::move(thrown);
        });
    asio::steady_timer timer(executor, load.warm_up());
    if (load.start_time)
        timer.expires_after(*load.start_time - std::chrono::system_clock::now());
    co_await timer.async_wait();
    const auto before = counted.pairs;
    counted.max_pair_time = {};
    const auto start = std::chrono::steady_clock::now();
    const auto cpu = thread_cpu_time();
    timer.expires_after(load.time);
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
        static_cast<double>(counted.max_pair_time.count()) / 1e6};
}

asio::awaitable<void> keep(asio::awaitable<rate> counting, rate& found)
{
    found = co_await std::move(counting);
}

} // namespace

std::optional<workload> workload_at(std::string_view scheme, std::string_view url)
{
    const auto start = scheme.size() + 3;
    const auto colon = url.rfind(':');
    if (!url.starts_with(std::string(scheme) + "://") || colon < start || url.find_first_of("@/?,", start) != url.npos)
        return std::nullopt;
    return workload{.host = std::string(url.substr(start, colon - start)), .port = std::string(url.substr(colon + 1))};
}

workload workload_of(std::string_view scheme, const options& settings)
{
    auto load = workload_at(scheme, settings.backend);
    if (!load)
        throw std::invalid_argument("a comparison needs --backend " + std::string(scheme) + "://HOST:PORT");
    load->time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9));
    if (settings.begins > 0)
        load->start_time = std::chrono::system_clock::from_time_t(settings.begins);
    return *load;
}

rate run_workers(asio::io_context& io, const workload& load, const worker& each)
{
    rate found;
    run_until_done(io, keep(measure_workers(load, each), found));
    return found;
}

} // namespace bench
