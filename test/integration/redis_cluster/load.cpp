// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "load.hpp"

#include <colock/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <future>
#include <random>
#include <utility>

namespace colock::testing {

using namespace std::chrono_literals;

std::vector<std::string> keys_in_six_slots()
{
    std::vector<std::string> keys;
    for (const auto* const tag : {"a", "b", "c", "d", "e", "f"}) {
        for (int i = 0; i < 4; ++i)
            keys.push_back("{" + std::string(tag) + "}" + std::to_string(i));
    }
    return keys;
}

std::vector<std::string> keys_of_all_masters()
{
    std::vector<std::string> keys;
    for (int i = 0; i < 24; ++i)
        keys.push_back("k" + std::to_string(i));
    return keys;
}

cluster_load::cluster_load(std::string url, std::vector<std::string> keys, std::chrono::milliseconds ttl)
    : cluster_load(redis::options{.url = std::move(url), .idle_timeout = 100ms}, std::move(keys), ttl)
{
}

cluster_load::cluster_load(redis::options settings, std::vector<std::string> keys, std::chrono::milliseconds ttl)
    : ttl_(ttl)
{
    for (auto& each : keys)
        keys_.push_back({.name = std::move(each)});
    for (int i = 0; i < 2; ++i)
        lockers_.emplace_back(redis::make_adapter(io_.get_executor(), settings));
}

cluster_load::~cluster_load() = default;

asio::awaitable<void> cluster_load::work(locker by, unsigned seed)
{
    std::minstd_rand random(seed);
    asio::steady_timer pause(co_await asio::this_coro::executor);
    while (std::chrono::steady_clock::now() < ends_) {
        auto& key = keys_[random() % keys_.size()];
        try {
            const auto before = std::chrono::steady_clock::now();
            auto held = co_await by.acquire(key.name, {.ttl = ttl_, .retry = within(30s)});
            const auto took = std::chrono::steady_clock::now() - before;
            result_.longest_acquire =
                std::max(result_.longest_acquire, std::chrono::duration_cast<std::chrono::milliseconds>(took));
            ++result_.grants;
            result_.overlaps += key.holders++ > 0 ? 1 : 0;
            result_.low_fences += held.fence() <= key.fence ? 1 : 0;
            key.fence = held.fence();
            pause.expires_after(std::chrono::microseconds(random() % 2000));
            co_await pause.async_wait(asio::deferred);
            // A lock that is lost may be granted to another holder, and this one knows it.
            --key.holders;
            co_await held.release();
        } catch (const error& failed) {
            // A lost lock is no error of the load: its holder was told.
            if (failed.code() != errc::lost && failed.code() != errc::not_held)
                result_.errors.emplace_back(failed.what());
        }
    }
}

cluster_load::result cluster_load::run(std::chrono::milliseconds duration, const std::function<void()>& faults)
{
    result_ = {};
    ends_ = std::chrono::steady_clock::now() + duration;
    unsigned seed = 1;
    for (const auto& each : lockers_) {
        for (int i = 0; i < 16; ++i)
            asio::co_spawn(io_, work(each, seed++), asio::detached);
    }
    auto other = std::async(std::launch::async, faults);
    io_.restart();
    io_.run();
    other.get();
    return result_;
}

void cluster_load::result::check() const
{
    BOOST_TEST(grants > 200u);
    BOOST_TEST(overlaps == 0u);
    BOOST_TEST(low_fences == 0u);
    BOOST_TEST(errors.size() == 0u, (errors.empty() ? "" : errors.front()));
    BOOST_TEST_MESSAGE(grants << " grants, longest acquire " << longest_acquire.count() << " ms");
}

} // namespace colock::testing
