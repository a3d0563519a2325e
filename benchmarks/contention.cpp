// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contention.hpp"

#include "../tools/built_backends.hpp"
#include "alternation.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <stdexcept>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {

contention::contention(const std::string& url, std::size_t lockers)
{
    while (lockers_.size() < lockers)
        lockers_.emplace_back(colock::make_adapter(io_.get_executor(), url, tools::built_backends()));
}

void contention::hold()
{
    run_until_done(io_, [](contention& self) -> asio::awaitable<void> {
        self.held_ =
            co_await self.lockers_.front().acquire(std::string(contended_key), {.renewal = colock::renewal::automatic});
    }(*this));
}

void contention::start_waiters(std::size_t waiters_of_each, const std::function<bool()>& ready)
{
    for (const colock::locker& each : lockers_)
        for (std::size_t i = 0; i < waiters_of_each; ++i)
            asio::co_spawn(io_, take_turns(each), asio::detached);
    running_ += lockers_.size() * waiters_of_each;
    run_while([&] { return waiting() < running_ || !ready(); });
    // A new subscriber checks the lock once more before it waits for events.
    run_for(200ms);
}

void contention::pass_on(std::uint64_t releases)
{
    wanted_ = releases;
    releases_ = 0;
    held_.reset();
    run_while([this] { return releases_ < wanted_; });
}

void contention::finish()
{
    wanted_ = 0;
    held_.reset();
    run_while([this] { return running_ > 0; });
}

std::size_t contention::waiting() const
{
    std::size_t count = 0;
    for (const colock::locker& each : lockers_)
        count += each.stats().waiting;
    return count;
}

asio::awaitable<void> contention::take_turns(colock::locker locker)
{
    do {
        colock::lock lock = co_await locker.acquire(std::string(contended_key));
        co_await lock.release();
        ++releases_;
    } while (releases_ < wanted_);
    --running_;
}

void contention::run_while(const std::function<bool()>& more)
{
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (more()) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error("the waiters make no progress");
        run_for(1ms);
    }
}

void contention::run_for(std::chrono::milliseconds time)
{
    io_.restart();
    io_.run_for(time);
}

} // namespace bench
