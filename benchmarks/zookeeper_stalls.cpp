// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "longest_handler.hpp"
#include "zookeeper.hpp"

#include "support/proxy.hpp"

#include <colock/connect.hpp>
#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

/// Locks of one locker, each on a key of its own, behind a link that can be cut.
class multitude
{
public:
    multitude(const race& at, std::size_t size) : size_(size), link_(static_cast<std::uint16_t>(std::stoi(at.port)))
    {
        colock::locker_options patient;
        patient.operation_timeout = 60s;
        locker_.emplace(
            colock::make_adapter(io_.get_executor(), "zookeeper://127.0.0.1:" + std::to_string(link_.port())), patient);
    }
    multitude(const multitude&) = delete;
    multitude& operator=(const multitude&) = delete;

    /// The longest handler, in milliseconds of CPU, until all are held.
    double take()
    {
        asio::co_spawn(io_, spawn(*this), asio::detached);
        return longest_handler(io_, [this] { return locks_.size() < size_; });
    }
    double release()
    {
        bool over = false;
        asio::co_spawn(io_, drop_all(*this, over), asio::detached);
        return longest_handler(io_, [&] { return !over; });
    }
    /// The same while nobody can be reached, and all are waited for.
    double miss()
    {
        link_.enable(false);
        asio::co_spawn(io_, spawn(*this), asio::detached);
        const auto end = std::chrono::steady_clock::now() + 1s;
        return longest_handler(io_, [&] { return std::chrono::steady_clock::now() < end; });
    }
    /// Until all are held after that.
    double find()
    {
        link_.enable(true);
        return longest_handler(io_, [this] { return locks_.size() < size_; });
    }
    double shut_down()
    {
        bool over = false;
        asio::co_spawn(
            io_,
            [](colock::locker& locker, bool& told) -> asio::awaitable<void> {
                co_await locker.shutdown(30s);
                told = true;
            }(*locker_, over),
            asio::detached);
        return longest_handler(io_, [&] { return !over; });
    }

private:
    /// In small groups: what it costs to make them is not measured.
    static asio::awaitable<void> spawn(multitude& self)
    {
        for (std::size_t i = 0; i < self.size_; ++i) {
            asio::co_spawn(self.io_, hold(self, i), asio::detached);
            if (i % 16 == 15)
                co_await asio::post(self.io_, asio::deferred);
        }
    }
    static asio::awaitable<void> drop_all(multitude& self, bool& over)
    {
        while (!self.locks_.empty()) {
            self.locks_.pop_back();
            if (self.locks_.size() % 16 == 0)
                co_await asio::post(self.io_, asio::deferred);
        }
        // What was asked before is answered before.
        colock::lock last = co_await self.locker_->acquire("stall:last");
        co_await last.release();
        over = true;
    }
    static asio::awaitable<void> hold(multitude& self, std::size_t number)
    {
        colock::lock lock = co_await self.locker_->acquire("stall:" + std::to_string(number), {.ttl = 10min});
        self.locks_.push_back(std::move(lock));
    }

    const std::size_t size_;
    colock::testing::proxy link_;
    asio::io_context io_{1};
    std::optional<colock::locker> locker_;
    std::vector<colock::lock> locks_;
};

} // namespace

void measure_zookeeper_stalls(const race& at, const options& settings, report& found)
{
    constexpr double wanted = 5.0;
    // All are asked for at once, and more would not be answered in time.
    const std::size_t size = settings.seconds < 0.5 ? 1000 : 3000;
    const auto name = std::to_string(size) + " keys, ";
    found.begin("ZooKeeper: the longest that one handler takes, in milliseconds of CPU, with locks on as many keys");
    multitude all(at, size);
    found.add({name + "all are taken for the first time", all.take(), "ms", wanted});
    found.add({name + "all are given back", all.release(), "ms", wanted});
    found.add({name + "all are taken again", all.take(), "ms", wanted});
    static_cast<void>(all.release());
    found.add({name + "all are asked for while the server is away", all.miss(), "ms", wanted});
    found.add({name + "all are taken when it is back", all.find(), "ms", wanted});
    found.add({name + "shutdown while all are held", all.shut_down(), "ms"});
}

} // namespace bench
