// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "longest_handler.hpp"
#include "wire.hpp"

#include <colock/connect.hpp>
#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

/// Waiters of one locker, each for a key of its own that somebody else holds.
class multitude
{
public:
    multitude(const race& at, const std::string& url, std::size_t size) : at_(at), size_(size)
    {
        // Each script sets some, so that the server has time for others in between.
        for_each_part("redis.call('SET', '{colock}:stall:' .. i, string.rep('f', 32), 'PX', 600000)");
        colock::locker_options patient;
        patient.operation_timeout = 60s;
        locker_.emplace(colock::make_adapter(io_.get_executor(), url), patient);
    }
    multitude(const multitude&) = delete;
    multitude& operator=(const multitude&) = delete;

    /// The longest handler, in milliseconds of CPU, until all wait and listen.
    double subscribe()
    {
        asio::co_spawn(io_, spawn(*this), asio::detached);
        // Each looks once more when it listens.
        return longest_handler(io_, [this] { return locker_->stats().attempts < 2 * size_; });
    }
    /// The same after all connections were lost.
    double subscribe_again()
    {
        const auto before = locker_->stats().attempts;
        wire operator_side(at_.host, at_.port);
        operator_side.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
        operator_side.ask({"CLIENT", "KILL", "TYPE", "normal"});
        return longest_handler(io_, [this, before] { return locker_->stats().attempts < before + size_; });
    }
    /// The same until all have had their locks, and have given them back.
    double disperse()
    {
        for_each_part("redis.call('DEL', '{colock}:stall:' .. i) redis.call('PUBLISH', '{colock}:stall:' .. i, '')");
        return longest_handler(io_, [this] { return running_ > 0; });
    }
    /// The same until all have been told of a shutdown.
    double shut_down()
    {
        bool over = false;
        asio::co_spawn(
            io_,
            [](colock::locker& locker, bool& told) -> asio::awaitable<void> {
                co_await locker.shutdown(10s);
                told = true;
            }(*locker_, over),
            asio::detached);
        const auto longest = longest_handler(io_, [&] { return !over || running_ > 0; });
        for_each_part("redis.call('DEL', '{colock}:stall:' .. i)");
        return longest;
    }

private:
    void for_each_part(std::string_view body)
    {
        wire server(at_.host, at_.port);
        constexpr std::size_t part = 1000;
        for (std::size_t first = 0; first < size_; first += part) {
            const auto answer =
                server.ask({"EVAL", "for i = ARGV[1], ARGV[2] do " + std::string(body) + " end return 1", "0",
                    std::to_string(first), std::to_string(std::min(size_, first + part) - 1)});
            expect(answer == ":1", answer);
        }
    }
    /// In small groups: what it costs to make them is not measured.
    static asio::awaitable<void> spawn(multitude& self)
    {
        for (std::size_t i = 0; i < self.size_; ++i) {
            asio::co_spawn(self.io_, wait(self, i), asio::detached);
            if (i % 16 == 15)
                co_await asio::post(self.io_, asio::deferred);
        }
    }
    static asio::awaitable<void> wait(multitude& self, std::size_t number)
    {
        ++self.running_;
        try {
            colock::lock lock = co_await self.locker_->acquire("stall:" + std::to_string(number));
            co_await lock.release();
        } catch (const colock::error& refused) {
            if (refused.code() != colock::errc::shutting_down)
                throw;
        }
        --self.running_;
    }
    const race& at_;
    const std::size_t size_;
    asio::io_context io_{1};
    std::optional<colock::locker> locker_;
    std::size_t running_ = 0;
};

} // namespace

void measure_redis_stalls(const race& at, const options& settings, report& found)
{
    // Of what the library does for them. Where they end, it is also what the allocator puts off and the caller's frees.
    constexpr double wanted = 5.0;
    found.begin("Redis: the longest that one handler takes, in milliseconds of CPU, with waiters on as many keys");
    for (const std::size_t size : {10'000U, 30'000U, 100'000U}) {
        // A short run is for counts.
        if (size > 10'000 && settings.seconds < 0.5)
            continue;
        const auto name = std::to_string(size) + " keys, ";
        {
            multitude all(at, settings.backend, size);
            found.add({name + "all begin to wait and subscribe", all.subscribe(), "ms", wanted});
            found.add({name + "after all connections were lost", all.subscribe_again(), "ms", wanted});
            found.add({name + "all are told of releases, and take and release", all.disperse(), "ms"});
        }
        multitude all(at, settings.backend, size);
        all.subscribe();
        found.add({name + "shutdown while all wait", all.shut_down(), "ms"});
    }
}

} // namespace bench
