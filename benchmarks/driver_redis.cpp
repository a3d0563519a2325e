// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "redis/scripts/scripts.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>

#include <string>

namespace asio = boost::asio;
namespace redis = boost::redis;

namespace bench {
namespace {

/// Acquires and releases locks with the commands that colock sends, without colock.
asio::awaitable<void> repeat_pairs(
    redis::connection& connection, const workload& load, std::string value, progress& counted, std::size_t key)
{
    const auto& script = colock::redis::detail::scripts::get().release;
    redis::request acquire;
    redis::request release;
    redis::response<std::string, std::int64_t> granted;
    redis::response<std::int64_t> released;
    const auto token = value.substr(0, 32);
    for (; !counted.stopping; key = load.next(key)) {
        const auto name = "{colock}:" + workload::name(key);
        acquire.clear();
        acquire.push("SET", name, value, "NX", "PX", load.ttl.count());
        acquire.push("INCR", "{colock}#fence");
        co_await connection.async_exec(acquire, granted, asio::deferred);
        release.clear();
        release.push("EVALSHA", script.digest(), 1, name, token);
        co_await connection.async_exec(release, released, asio::deferred);
        if (!std::get<0>(released) || std::get<0>(released).value() != 1)
            throw std::runtime_error("the driver's loop has lost a lock");
        ++counted.pairs;
    }
}

} // namespace

rate run_driver(const workload& load, const std::string& value)
{
    asio::io_context io{1};
    redis::connection connection(io.get_executor(), redis::logger(redis::logger::level::disabled));
    redis::config config;
    config.addr = {load.host, load.port};
    connection.async_run(config, asio::detached);
    const auto found = run_workers(io, load,
        [&](progress& counted, std::size_t key) { return repeat_pairs(connection, load, value, counted, key); });
    connection.cancel();
    io.restart();
    io.run();
    return found;
}

} // namespace bench
