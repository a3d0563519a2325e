// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "held_locks.hpp"

#include "many_locks.hpp"

#include "support/toxiproxy.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

/// Locks of one locker on different keys. The connections go through a proxy that can be disabled.
class holders final : public many_locks
{
public:
    holders(const workload& at, const url_at& url, std::size_t size)
        : many_locks(size), link_(static_cast<std::uint16_t>(std::stoi(at.port)))
    {
        // The growth of this vector must not be measured.
        locks_.reserve(size);
        connect(url(link_.port()));
    }

    /// Acquires all locks, and returns the longest handler.
    longest_time acquire_all()
    {
        start();
        return until_all_are_held();
    }
    longest_time release_all()
    {
        bool over = false;
        asio::co_spawn(io(), release_each(*this, over), asio::detached);
        return longest_handler(io(), [&] { return !over; });
    }
    /// Acquires all locks while the server is unreachable. Returns the longest handler of one second.
    longest_time acquire_while_unreachable()
    {
        link_.enable(false);
        start();
        const auto end = std::chrono::steady_clock::now() + 1s;
        return longest_handler(io(), [&] { return std::chrono::steady_clock::now() < end; });
    }
    /// Makes the server reachable again. Returns the longest handler until all locks are held.
    longest_time acquire_after_reconnect()
    {
        link_.enable(true);
        return until_all_are_held();
    }

private:
    longest_time until_all_are_held()
    {
        return longest_handler(io(), [this] { return locks_.size() < size(); });
    }
    static asio::awaitable<void> release_each(holders& self, bool& over)
    {
        while (!self.locks_.empty()) {
            self.locks_.pop_back();
            if (self.locks_.size() % 16 == 0)
                co_await asio::post(self.io(), asio::deferred);
        }
        // This request is answered after all earlier requests.
        colock::lock last = co_await self.locker().acquire("stall:last");
        co_await last.release();
        over = true;
    }
    asio::awaitable<void> run_one(std::string key) override
    {
        colock::lock lock = co_await locker().acquire(std::move(key), {.ttl = 10min});
        locks_.push_back(std::move(lock));
    }

    colock::testing::toxiproxy link_;
    std::vector<colock::lock> locks_;
};

} // namespace

void measure_held_locks(
    const std::string& backend, const url_at& url, const workload& at, const options& settings, report& results)
{
    results.begin(backend + ": the longest handler, in milliseconds of CPU time, by number of locks");
    for (const std::size_t size : {3'000U, 10'000U}) {
        // A short run is made for the counted numbers, and leaves long measurements out.
        if (size > 3'000 && settings.seconds < 0.5)
            continue;
        const auto name = std::to_string(size) + " keys, ";
        // The allocator merges the small blocks of many ended requests at once. The time for this grows with their
        // number.
        const double limit = size > 3'000 ? 10.0 : 5.0;
        holders all(at, url, size);
        add(results, name + "all are acquired for the first time", all.acquire_all(), limit);
        add(results, name + "all are released", all.release_all(), limit);
        add(results, name + "all are acquired again", all.acquire_all(), limit);
        static_cast<void>(all.release_all());
        add(results, name + "all are requested while the server is unreachable", all.acquire_while_unreachable(),
            limit);
        add(results, name + "all are acquired after the reconnect", all.acquire_after_reconnect(), limit);
        add(results, name + "shutdown while all are held", all.shut_down(), limit);
    }
}

} // namespace bench
