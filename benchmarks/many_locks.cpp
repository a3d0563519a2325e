// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "many_locks.hpp"
#include "../tools/built_backends.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <chrono>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {

void many_locks::connect(const std::string& url)
{
    colock::locker_options patient;
    patient.operation_timeout = 60s;
    locker_.emplace(colock::make_adapter(io_.get_executor(), url, tools::built_backends()), patient);
}

void many_locks::start()
{
    asio::co_spawn(io_, start_all(*this), asio::detached);
}

/// Starts 16 coroutines per handler. One handler that starts all of them would be the longest one, although their
/// creation is not what is measured.
asio::awaitable<void> many_locks::start_all(many_locks& self)
{
    for (std::size_t i = 0; i < self.size_; ++i) {
        asio::co_spawn(self.io_, run(self, i), asio::detached);
        if (i % 16 == 15)
            co_await asio::post(self.io_, asio::deferred);
    }
}

asio::awaitable<void> many_locks::run(many_locks& self, std::size_t number)
{
    ++self.running_;
    try {
        co_await self.run_one("stall:" + std::to_string(number));
    } catch (const colock::error& refused) {
        if (refused.code() != colock::errc::shutting_down)
            throw;
    }
    --self.running_;
}

longest_time many_locks::shut_down()
{
    bool is_shut_down = false;
    asio::co_spawn(
        io_,
        [](colock::locker& locker, bool& done) -> asio::awaitable<void> {
            co_await locker.shutdown(30s);
            done = true;
        }(*locker_, is_shut_down),
        asio::detached);
    return longest_handler(io_, [&] { return !is_shut_down || running_ > 0; });
}

} // namespace bench
