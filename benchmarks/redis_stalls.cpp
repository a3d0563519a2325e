// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "many_locks.hpp"
#include "redis_connection.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace asio = boost::asio;

namespace bench {
namespace {

/// Waiters of one locker, each for its own key, which another client holds.
class waiters final : public many_locks
{
public:
    waiters(const workload& at, const std::string& url, std::size_t size) : many_locks(size), at_(at)
    {
        for_each_key("redis.call('SET', '{colock}:stall:' .. i, string.rep('f', 43) .. '\\0\\0\\0', 'PX', 600000)");
        connect(url);
    }
    ~waiters() override { for_each_key("redis.call('DEL', '{colock}:stall:' .. i)"); }

    /// Starts the waiters. Returns the longest handler until all of them wait for events.
    longest_time subscribe()
    {
        start();
        // Each waiter checks its lock once more after it has subscribed.
        return longest_handler(io(), [this] { return locker().stats().attempts < 2 * size(); });
    }
    /// Closes all connections of the locker. Returns the longest handler until all waiters have checked their locks
    /// again.
    longest_time subscribe_again()
    {
        const auto before = locker().stats().attempts;
        redis_connection administrator(at_.host, at_.port);
        administrator.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
        administrator.ask({"CLIENT", "KILL", "TYPE", "normal"});
        return longest_handler(io(), [this, before] { return locker().stats().attempts < before + size(); });
    }
    /// Releases the keys. Returns the longest handler until all waiters have acquired and released their locks.
    longest_time release_all()
    {
        for_each_key("redis.call('DEL', '{colock}:stall:' .. i) redis.call('PUBLISH', '{colock}:stall:' .. i, '')");
        return longest_handler(io(), [this] { return running() > 0; });
    }

private:
    /// Runs Lua code on the server once for each key, whose number is in the variable `i`. Each script handles a part
    /// of the keys, so that the server can execute other commands in between.
    void for_each_key(std::string_view code)
    {
        redis_connection server(at_.host, at_.port);
        constexpr std::size_t part = 1000;
        for (std::size_t first = 0; first < size(); first += part) {
            const auto answer =
                server.ask({"EVAL", "for i = ARGV[1], ARGV[2] do " + std::string(code) + " end return 1", "0",
                    std::to_string(first), std::to_string(std::min(size(), first + part) - 1)});
            expect(answer == ":1", answer);
        }
    }
    asio::awaitable<void> run_one(std::string key) override
    {
        colock::lock lock = co_await locker().acquire(std::move(key));
        co_await lock.release();
    }

    const workload& at_;
};

} // namespace

void measure_redis_stalls(const workload& at, const options& settings, report& results)
{
    results.begin("Redis: the longest handler, in milliseconds of CPU time, by number of waiters");
    for (const std::size_t size : {10'000U, 30'000U, 100'000U}) {
        // A short run is made for the counted numbers, and leaves long measurements out.
        if (size > 10'000 && settings.seconds < 0.5)
            continue;
        const auto name = std::to_string(size) + " keys, ";
        {
            waiters all(at, settings.backend, size);
            add(results, name + "all start to wait and subscribe", all.subscribe());
            add(results, name + "after all connections were lost", all.subscribe_again());
            add(results, name + "all are notified of releases, acquire and release", all.release_all());
        }
        waiters all(at, settings.backend, size);
        static_cast<void>(all.subscribe());
        add(results, name + "shutdown while all wait", all.shut_down());
    }
}

} // namespace bench
