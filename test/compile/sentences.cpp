// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Typical mistakes for which colock has a sentence. The compiler's first error names the line and has the sentence.

#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

// clang-format off: each mistake is one line.

asio::awaitable<void> make_mistakes(colock::locker locker, asio::steady_timer timer)
{
    co_await locker.async_acquire("k", asio::as_tuple(colock::with_diagnostics(asio::deferred))); // error: write with_diagnostics(as_tuple(token))
    co_await timer.async_wait(asio::as_tuple(colock::with_diagnostics(asio::deferred))); // error: write with_diagnostics(as_tuple(token))
}
