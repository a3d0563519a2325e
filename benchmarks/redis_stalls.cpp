// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "multitude.hpp"
#include "wire.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace asio = boost::asio;

namespace bench {
namespace {

/// Waiters of one locker, each for a key of its own that somebody else holds.
class waiters final : public multitude
{
public:
    waiters(const race& at, const std::string& url, std::size_t size) : multitude(size), at_(at)
    {
        // Each script sets some, so that the server has time for others in between.
        for_each_part("redis.call('SET', '{colock}:stall:' .. i, string.rep('f', 43) .. '\\0\\0\\0', 'PX', 600000)");
        connect(url);
    }
    ~waiters() override { for_each_part("redis.call('DEL', '{colock}:stall:' .. i)"); }

    /// Until all wait and listen.
    longest_time subscribe()
    {
        spawn();
        // Each looks once more when it listens.
        return longest_handler(io(), [this] { return locker().stats().attempts < 2 * size(); });
    }
    /// The same after all connections were lost.
    longest_time subscribe_again()
    {
        const auto before = locker().stats().attempts;
        wire operator_side(at_.host, at_.port);
        operator_side.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
        operator_side.ask({"CLIENT", "KILL", "TYPE", "normal"});
        return longest_handler(io(), [this, before] { return locker().stats().attempts < before + size(); });
    }
    /// Until all have had their locks, and have given them back.
    longest_time disperse()
    {
        for_each_part("redis.call('DEL', '{colock}:stall:' .. i) redis.call('PUBLISH', '{colock}:stall:' .. i, '')");
        return longest_handler(io(), [this] { return running() > 0; });
    }

private:
    void for_each_part(std::string_view body)
    {
        wire server(at_.host, at_.port);
        constexpr std::size_t part = 1000;
        for (std::size_t first = 0; first < size(); first += part) {
            const auto answer =
                server.ask({"EVAL", "for i = ARGV[1], ARGV[2] do " + std::string(body) + " end return 1", "0",
                    std::to_string(first), std::to_string(std::min(size(), first + part) - 1)});
            expect(answer == ":1", answer);
        }
    }
    asio::awaitable<void> live(std::string key) override
    {
        colock::lock lock = co_await locker().acquire(std::move(key));
        co_await lock.release();
    }

    const race& at_;
};

} // namespace

void measure_redis_stalls(const race& at, const options& settings, report& found)
{
    found.begin("Redis: the longest that one handler takes, in milliseconds of CPU, with waiters on as many keys");
    for (const std::size_t size : {10'000U, 30'000U, 100'000U}) {
        // A short run is for counts.
        if (size > 10'000 && settings.seconds < 0.5)
            continue;
        const auto name = std::to_string(size) + " keys, ";
        {
            waiters all(at, settings.backend, size);
            add(found, name + "all begin to wait and subscribe", all.subscribe());
            add(found, name + "after all connections were lost", all.subscribe_again());
            add(found, name + "all are told of releases, and take and release", all.disperse());
        }
        waiters all(at, settings.backend, size);
        static_cast<void>(all.subscribe());
        add(found, name + "shutdown while all wait", all.shut_down());
    }
}

} // namespace bench
