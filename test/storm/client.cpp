// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "client.hpp"

#include "../../tools/built_backends.hpp"
#include "history.hpp"

#include <colock/error.hpp>
#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

namespace storm {

asio::awaitable<void> sleep(lease_clock::duration span)
{
    colock::lease_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::use_awaitable);
}

namespace {

std::int64_t nanoseconds(lease_clock::time_point at)
{
    return at.time_since_epoch().count();
}

class client
{
public:
    client(const settings& how, std::uint32_t seed, const std::string& url, const std::filesystem::path& log,
        lease_clock::time_point end)
        : how_(how), draw_(seed), end_(end), log_(log),
          by_(colock::make_adapter(io_.get_executor(), url, tools::built_backends()), {.operation_timeout = 2s})
    {
    }

    void run()
    {
        for (std::uint32_t n = 0; n < how_.workers; ++n)
            asio::co_spawn(io_, work(), [this](std::exception_ptr failure) { on_end(std::move(failure)); });
        io_.run();
        if (failure_)
            std::rethrow_exception(failure_);
        std::string text = "storm: process " + std::to_string(::getpid()) + ": " + std::to_string(holds_) + " holds";
        for (const auto& [what, count] : failures_)
            text += "; " + std::to_string(count) + " x " + what;
        std::cout << text + '\n' << std::flush;
    }

private:
    void count(const colock::error& failed)
    {
        // The message of the code, without its advice.
        const auto text = failed.code().message();
        ++failures_[text.substr(0, text.find_first_of(",;:"))];
    }

    void on_end(std::exception_ptr failure)
    {
        if (failure)
            failure_ = std::move(failure);
        if (--running_ == 0)
            asio::co_spawn(io_, shut_down(), [this](std::exception_ptr problem) {
                if (problem)
                    failure_ = std::move(problem);
            });
    }

    asio::awaitable<void> shut_down()
    {
        const auto report = co_await by_.shutdown(60s);
        if (!report.clean())
            throw std::runtime_error("the shutdown was not clean");
    }

    asio::awaitable<void> work()
    {
        ++running_;
        while (lease_clock::now() < end_) {
            try {
                co_await acquire_at_random();
            } catch (const colock::error& failed) {
                count(failed);
            }
        }
    }

    asio::awaitable<void> acquire_at_random()
    {
        const auto key = how_.key(draw_.below(how_.keys));
        colock::acquire_options options{.ttl = draw_.once_in(4) ? 500ms : 1500ms + draw_.time_below(3s)};
        if (draw_.once_in(8))
            options.ttl = 0ms;
        if (draw_.once_in(3))
            options.mode = colock::lock_mode::shared;
        if (draw_.once_in(2))
            options.renewal = colock::renewal::manual;
        options.retry = draw_.once_in(2) ? colock::within(200ms + draw_.time_below(8s))
                                         : colock::retry_policy::fixed(50ms).times(40).jitter(0.3);
        switch (draw_.below(6)) {
        case 0:
            if (auto held = co_await by_.try_acquire(key, options))
                co_await use(std::move(*held));
            break;
        case 1:
        case 2: {
            auto [failed, held] = co_await by_.async_acquire(key, options,
                asio::cancel_after(
                    draw_.time_below(draw_.once_in(2) ? 10ms : 400ms), asio::as_tuple(asio::use_awaitable)));
            if (!failed)
                co_await use(std::move(held));
            break;
        }
        case 3:
            co_await use_group(options);
            break;
        default:
            co_await use(co_await by_.acquire(key, options));
            break;
        }
    }

    asio::awaitable<void> use_group(colock::acquire_options options)
    {
        std::vector<std::string> keys;
        for (std::uint32_t n = 0, first = draw_.below(how_.keys); n < std::min(how_.keys, 2U); ++n)
            keys.push_back(how_.key((first + n) % how_.keys));
        auto group = co_await by_.acquire_all(std::move(keys), std::move(options));
        const auto from = lease_clock::now();
        co_await sleep(draw_.time_below(40ms));
        const auto until = lease_clock::now();
        for (const auto& each : group.locks())
            record(each, from, until);
        if (!draw_.once_in(3))
            std::ignore = co_await group.release();
    }

    asio::awaitable<void> use(colock::lock held)
    {
        const auto from = lease_clock::now();
        co_await sleep(draw_.time_below(draw_.once_in(20) ? 2s : 10ms));
        if (held.held() && held.ttl() > 0ms && draw_.once_in(4)) {
            try {
                co_await held.extend(1s + draw_.time_below(3s));
                co_await sleep(draw_.time_below(100ms));
            } catch (const colock::error& failed) {
                count(failed);
            }
        }
        if (how_.early_release && draw_.once_in(10)) {
            co_await held.release();
            co_await sleep(20ms);
            write({held.key(), held.mode() == colock::lock_mode::shared, held.fence(), nanoseconds(from),
                nanoseconds(lease_clock::now())});
            co_return;
        }
        record(held, from, lease_clock::now());
        if (draw_.once_in(6)) {
            co_await hand_over(std::move(held));
        } else if (draw_.once_in(6)) {
            auto [ignored] = co_await held.async_release(
                asio::cancel_after(draw_.time_below(5ms), asio::as_tuple(asio::use_awaitable)));
            static_cast<void>(ignored);
        } else if (!draw_.once_in(5)) {
            co_await held.release(colock::on_failure::raise);
        }
    }

    asio::awaitable<void> hand_over(colock::lock held)
    {
        const auto ttl = 1s + draw_.time_below(2s);
        auto ticket = co_await held.detach();
        co_await sleep(draw_.time_below(20ms));
        auto next = co_await by_.adopt(std::move(ticket), {.ttl = ttl});
        const auto from = lease_clock::now();
        co_await sleep(draw_.time_below(50ms));
        record(next, from, lease_clock::now());
        co_await next.release();
    }

    void record(const colock::lock& held, lease_clock::time_point from, lease_clock::time_point until)
    {
        // A grant may arrive after the end of its lease. Then the lock was never held.
        until = std::min(until, held.expires_at());
        if (from < until)
            write({held.key(), held.mode() == colock::lock_mode::shared, held.fence(), nanoseconds(from),
                nanoseconds(until)});
    }
    void write(const hold& held)
    {
        ++holds_;
        log_ << held << '\n';
    }

    const settings& how_;
    random_numbers draw_;
    const lease_clock::time_point end_;
    std::ofstream log_;
    asio::io_context io_{1};
    colock::locker by_;
    std::uint32_t running_ = 0;
    std::uint64_t holds_ = 0;
    std::map<std::string, std::uint64_t> failures_;
    std::exception_ptr failure_;
};

} // namespace

void run_client(const settings& how, std::uint32_t seed, const std::string& url, const std::filesystem::path& log,
    lease_clock::time_point end)
{
    client(how, seed, url, log, end).run();
}

} // namespace storm
