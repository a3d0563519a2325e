// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Compiled and linked by a project that only uses colock. Returns 0 on success.
#include <colock/colock.hpp>
#include <colock/version.hpp>
#ifdef WITH_CONNECT
#include <colock/connect.hpp>
#endif
#ifdef WITH_METRICS
#include <colock/metrics.hpp>
#endif
#ifdef WITH_TESTING
#include <colock/testing/history.hpp>
#include <colock/testing/scripted_adapter.hpp>
#include <colock/testing/virtual_clock.hpp>
#endif
#ifdef WITH_REDIS
#include <colock/redis/adapter.hpp>
#endif
#ifdef WITH_ZOOKEEPER
#include <colock/zookeeper/adapter.hpp>
#endif
#ifdef WITH_MONGO
#include <colock/mongo/adapter.hpp>
#endif

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace asio = boost::asio;

asio::awaitable<void> use(colock::locker locker, bool& done)
{
    colock::lock lock = co_await locker.acquire("key");
    co_await lock.release();
    done = co_await locker.with_lock("key", [] { return true; });
}

/// Checks that an exception crosses from the library of a backend into the program, and that the backend can use the
/// context that other libraries use. An adapter does no I/O before its first use.
template <class Options, class MakeAdapter>
bool works(asio::io_context& io, MakeAdapter make_adapter, Options options, std::string url)
{
    options.url = "a:b:c";
    try {
        static_cast<void>(make_adapter(io.get_executor(), options));
        return false;
    } catch (const colock::validation_error& refused) {
        if (refused.code() != colock::errc::invalid_options)
            return false;
    }
    options.url = std::move(url);
    const colock::locker locker(make_adapter(io.get_executor(), options));
    return true;
}

#ifdef WITH_TESTING
/// Checks that the virtual clock of the static library moves the clock of the core, which may be a shared library.
bool works_in_virtual_time()
{
    const colock::testing::virtual_clock clock;
    asio::io_context io;
    colock::testing::history history;
    const auto store = colock::memory::make_adapter(io.get_executor());
    const auto backend = std::make_shared<colock::testing::scripted_adapter>(store);
    colock::locker locker(backend, {.retry = colock::within(std::chrono::hours(1))});
    backend->next(colock::testing::operation::create, colock::testing::step::lose_reply());
    const colock::lock lock = clock.run(io, locker.acquire("key"));
    const auto start = colock::lease_clock::now();
    clock.advance(io, std::chrono::minutes(1));
    static_cast<void>(history.begin_work(lock));
    return colock::lease_clock::now() - start >= std::chrono::minutes(1) && !lock.held() && history.check() != "";
}
#endif

int main()
{
    asio::io_context io;
#ifdef WITH_CONNECT
    colock::locker locker(colock::make_adapter(io.get_executor(), "memory:"));
#else
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));
#endif
    bool backends_work = true;
#ifdef WITH_REDIS
    backends_work &= works(io, &colock::redis::make_adapter, colock::redis::options{}, "redis://127.0.0.1:1");
#endif
#ifdef WITH_ZOOKEEPER
    backends_work &=
        works(io, &colock::zookeeper::make_adapter, colock::zookeeper::options{}, "zookeeper://127.0.0.1:1");
#endif
#ifdef WITH_MONGO
    backends_work &= works(io, &colock::mongo::make_adapter, colock::mongo::options{}, "mongodb://127.0.0.1:1/locks");
#endif

#if defined(WITH_CONNECT) && defined(WITH_REDIS)
    backends_work &=
        colock::make_adapter(io.get_executor(), "redis://127.0.0.1:1", {colock::redis::by_url})->traits().name ==
        "redis";
#endif

#ifdef WITH_METRICS
    const colock::metrics counted;
    backends_work &= !counted.text({locker}).empty();
#endif

#ifdef WITH_TESTING
    backends_work &= works_in_virtual_time();
#endif

    bool done = false;
    asio::co_spawn(io, use(locker, done), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    io.run();
    const std::string headers = std::to_string(COLOCK_VERSION_MAJOR) + "." + std::to_string(COLOCK_VERSION_MINOR) +
                                "." + std::to_string(COLOCK_VERSION_PATCH);
    const bool same_version = headers == colock::version();
    return done && backends_work && same_version ? EXIT_SUCCESS : EXIT_FAILURE;
}
