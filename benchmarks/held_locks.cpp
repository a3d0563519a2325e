// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "held_locks.hpp"

#include "multitude.hpp"

#include "support/proxy.hpp"

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

/// Locks of one locker, each on a key of its own, behind a link that can be cut.
class holders final : public multitude
{
public:
    holders(const race& at, const url_at& url, std::size_t size)
        : multitude(size), link_(static_cast<std::uint16_t>(std::stoi(at.port)))
    {
        // A vector that grows is not the library's.
        locks_.reserve(size);
        connect(url(link_.port()));
    }

    /// Until all are held.
    longest_time take()
    {
        spawn();
        return until_all_are_held();
    }
    longest_time release()
    {
        bool over = false;
        asio::co_spawn(io(), drop_all(*this, over), asio::detached);
        return longest_handler(io(), [&] { return !over; });
    }
    /// While nobody can be reached, and all are waited for.
    longest_time miss()
    {
        link_.enable(false);
        spawn();
        const auto end = std::chrono::steady_clock::now() + 1s;
        return longest_handler(io(), [&] { return std::chrono::steady_clock::now() < end; });
    }
    /// Until all are held after that.
    longest_time find()
    {
        link_.enable(true);
        return until_all_are_held();
    }

private:
    longest_time until_all_are_held()
    {
        return longest_handler(io(), [this] { return locks_.size() < size(); });
    }
    static asio::awaitable<void> drop_all(holders& self, bool& over)
    {
        while (!self.locks_.empty()) {
            self.locks_.pop_back();
            if (self.locks_.size() % 16 == 0)
                co_await asio::post(self.io(), asio::deferred);
        }
        // What was asked before is answered before.
        colock::lock last = co_await self.locker().acquire("stall:last");
        co_await last.release();
        over = true;
    }
    asio::awaitable<void> live(std::string key) override
    {
        colock::lock lock = co_await locker().acquire(std::move(key), {.ttl = 10min});
        locks_.push_back(std::move(lock));
    }

    colock::testing::proxy link_;
    std::vector<colock::lock> locks_;
};

} // namespace

void measure_held_locks(
    const std::string& backend, const url_at& url, const race& at, const options& settings, report& found)
{
    found.begin(backend + ": the longest that one handler takes, in milliseconds of CPU, with locks on as many keys");
    for (const std::size_t size : {3'000U, 10'000U}) {
        // A short run is for counts.
        if (size > 3'000 && settings.seconds < 0.5)
            continue;
        const auto name = std::to_string(size) + " keys, ";
        // The allocator joins the small blocks of many ended requests at once, which takes time that grows with their
        // number.
        const double wanted = size > 3'000 ? 10.0 : 5.0;
        holders all(at, url, size);
        add(found, name + "all are taken for the first time", all.take(), wanted);
        add(found, name + "all are given back", all.release(), wanted);
        add(found, name + "all are taken again", all.take(), wanted);
        static_cast<void>(all.release());
        add(found, name + "all are asked for while the server is away", all.miss(), wanted);
        add(found, name + "all are taken when it is back", all.find(), wanted);
        add(found, name + "shutdown while all are held", all.shut_down(), wanted);
    }
}

} // namespace bench
