// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include "alternation.hpp"
#include "load.hpp"
#ifdef COLOCK_BENCH_REDIS
#include "peers.hpp"
#include "redis.hpp"
#endif

#include <colock/connect.hpp>
#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <stdexcept>

namespace asio = boost::asio;

namespace bench {
namespace {

void measure_loads(const options& settings, report& found)
{
    asio::io_context io{1};
    const auto adapter = colock::make_adapter(io.get_executor(), settings.backend);
    const colock::locker impatient(adapter, {.retry = colock::retry_policy::never()});
    // Connects; a server that cannot be had is said here, once.
    run_until_done(io, [](colock::locker probe) -> asio::awaitable<void> {
        colock::lock lock = co_await probe.acquire("load:probe");
        co_await lock.release();
    }(impatient));
    const colock::locker locker(adapter);
    for (const std::size_t in_flight : {1U, 64U, 1000U})
        measure_load(io, locker, in_flight, in_flight * 100, settings.seconds, found);
    measure_load(io, locker, settings.concurrency, settings.keys, settings.seconds, found);
}

#ifdef COLOCK_BENCH_REDIS
chart run_redis(const race& at, const options& settings, report& found)
{
    chart drawn;
    if (!settings.peers.empty() && settings.wants("uncontended"))
        drawn = run_uncontended_race(settings, found);
    if (settings.wants("contended"))
        run_contended_race(settings, found);
    if (settings.wants("hand-off")) {
        if (at.host == "127.0.0.1")
            measure_redis_hand_off(at, settings, found);
        else
            found.fact("left out", "hand-off, which wants a server on 127.0.0.1");
    }
    if (settings.wants("waiters"))
        measure_redis_waiters(at, settings, found);
    if (settings.wants("stalls"))
        measure_redis_stalls(at, settings, found);
    if (settings.wants("growth"))
        measure_redis_growth(settings, found);
    return drawn;
}
#endif

} // namespace

chart run_remote(const options& settings, report& found)
{
    chart drawn;
#ifdef COLOCK_BENCH_REDIS
    if (settings.part == hand_off_partner)
        run_redis_hand_off_partner(settings);
    if (settings.part == driver_program)
        run_driver_program(settings);
    if (const auto at = race_at(settings.backend))
        drawn = run_redis(*at, settings, found);
    else
#endif
        if (!settings.peers.empty())
        throw std::invalid_argument("--peers needs colock::redis, and --backend redis://HOST:PORT");
    // Beside the races it would say nothing new.
    if (settings.part == "load" || (settings.part.empty() && settings.peers.empty()))
        measure_loads(settings, found);
    return drawn;
}

} // namespace bench
