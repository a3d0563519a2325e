// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include "alternation.hpp"
#include "forms.hpp"
#include "load.hpp"
#ifdef COLOCK_BUILT_MONGO
#include "mongo.hpp"
#endif
#ifdef COLOCK_BUILT_REDIS
#include "redis.hpp"
#endif
#ifdef COLOCK_BUILT_ZOOKEEPER
#include "../tools/built_backends.hpp"
#include "zookeeper.hpp"
#endif

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <optional>
#include <stdexcept>

namespace asio = boost::asio;

namespace bench {
namespace {

void measure_loads(const options& settings, report& results)
{
    asio::io_context io{1};
    const auto adapter = colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends());
    const colock::locker impatient(adapter, {.retry = colock::retry_policy::never()});
    // Connects. An unreachable server is reported here, once.
    run_until_done(io, [](colock::locker probe) -> asio::awaitable<void> {
        colock::lock lock = co_await probe.acquire("load:probe");
        co_await lock.release();
    }(impatient));
    const colock::locker locker(adapter);
    for (const std::size_t in_flight : {1U, 64U, 1000U})
        measure_load(io, locker, in_flight, in_flight * 100, settings.seconds, results);
    measure_load(io, locker, settings.concurrency, settings.keys, settings.seconds, results);
}

} // namespace

chart run_remote(const options& settings, report& results)
{
    // run_redis(), run_zookeeper() and run_mongo() return nothing if the URL does not name their backend.
    std::optional<chart> rates;
#ifdef COLOCK_BUILT_REDIS
    if (!rates)
        rates = run_redis(settings, results);
#endif
#ifdef COLOCK_BUILT_ZOOKEEPER
    if (!rates)
        rates = run_zookeeper(settings, results);
#endif
#ifdef COLOCK_BUILT_MONGO
    if (!rates)
        rates = run_mongo(settings, results);
#endif
    if (!rates && !settings.peers.empty())
        throw std::invalid_argument("--peers needs --backend redis://HOST:PORT, zookeeper://HOST:PORT or "
                                    "mongodb://HOST:PORT, and the backend in this build");
    if (settings.wants("forms"))
        measure_forms(settings, results);
    // With peers, the comparisons already contain this measurement.
    if (settings.part == "load" || (settings.part.empty() && settings.peers.empty()))
        measure_loads(settings, results);
    return rates.value_or(chart());
}

} // namespace bench
