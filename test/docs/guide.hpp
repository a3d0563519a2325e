// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/jump.hpp"
#include "support/print.hpp"
#include "support/run.hpp"

#include <colock/colock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>
#include <utility>

// Compiles and runs the code of the guide: docs/guide-*.md.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using colock::testing::jump;
using colock::testing::run_coro;
using colock::testing::virtual_clock;

inline asio::awaitable<void> charge(int, std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> write_cache(std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> write_index(std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> write_step(int, std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> mark_reserved(int, std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> load_catalogue()
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> draw_page()
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<void> write_record(std::string, std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
inline asio::awaitable<int> sum_of(int items)
{
    co_await asio::post(asio::deferred);
    co_return items * 10;
}

struct fixture
{
    virtual_clock clock;
    asio::io_context io{1};
    colock::locker locker{colock::memory::make_adapter(io.get_executor())};

    template <class T>
    T run(asio::awaitable<T> coroutine)
    {
        return run_coro(io, std::move(coroutine));
    }
    bool locked(const std::string& key) { return run(locker.is_locked(key)); }
    template <class T>
    colock::error_code code_of(asio::awaitable<T> coroutine)
    {
        try {
            static_cast<void>(run(std::move(coroutine)));
        } catch (const boost::system::system_error& failure) {
            return failure.code();
        }
        return {};
    }
};
