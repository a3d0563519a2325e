// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Prints a timeline of lock events: an observer prints every event with the time since the start. One worker holds its
// lock for longer than its TTL, a second one waits for it, and an administrator breaks the lock of a third one.

#include <colock/colock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace asio = boost::asio;
using namespace std::chrono_literals;

//[ timeline
class timeline : public colock::observer
{
public:
    void ready(std::string_view backend) noexcept override { print(backend, "ready"); }
    void unreachable(std::string_view, const colock::error_code& error, std::string_view address,
        std::string_view detail) noexcept override
    {
        print(address, "unreachable", detail.empty() ? error.what() : std::string(detail));
    }
    void suspended(std::string_view backend, const colock::error_code& error) noexcept override
    {
        print(backend, "suspended", error.what());
    }
    void reconnected(std::string_view backend) noexcept override { print(backend, "reconnected"); }
    void warning(std::string_view backend, std::string_view message) noexcept override
    {
        print(backend, "warning", message);
    }

    void waiting(std::string_view key) noexcept override { print(key, "waiting"); }
    void granted(std::string_view key, std::uint64_t, std::chrono::nanoseconds) noexcept override
    {
        print(key, "granted");
    }
    void renewed(std::string_view key, std::chrono::nanoseconds) noexcept override { print(key, "renewed"); }
    void at_risk(std::string_view key, const colock::error_code& error) noexcept override
    {
        print(key, "at risk", error.what());
    }
    void lost(std::string_view key, colock::lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        print(key, "lost", colock::to_string(reason));
    }
    void released(std::string_view key, std::chrono::nanoseconds) noexcept override { print(key, "released"); }
    void elected(std::string_view key, std::uint64_t) noexcept override { print(key, "elected"); }
    void resigned(std::string_view key, std::uint64_t) noexcept override { print(key, "resigned"); }
    void deposed(std::string_view key, std::uint64_t, colock::lost_reason reason) noexcept override
    {
        print(key, "deposed", colock::to_string(reason));
    }
    void settled(std::string_view key, bool proven) noexcept override
    {
        print(key, "settled", proven ? "proven" : "its ttl has passed");
    }

private:
    // This function is noexcept and fast, and may be called on any thread. A single call of printf meets these
    // requirements.
    void print(std::string_view subject, std::string_view event, std::string_view detail = {}) const noexcept
    {
        const auto passed = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_);
        std::printf("%8.1f ms  %-10.*s %.*s%s%.*s\n", passed.count(), static_cast<int>(subject.size()), subject.data(),
            static_cast<int>(event.size()), event.data(), detail.empty() ? "" : ": ", static_cast<int>(detail.size()),
            detail.data());
    }

    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
//]

asio::awaitable<void> rest(std::chrono::milliseconds span)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::deferred);
}

asio::awaitable<void> work(colock::locker locker, std::chrono::milliseconds span)
{
    co_await locker.with_lock("report", {.ttl = 3s}, [span] { return rest(span); });
}

asio::awaitable<void> run(colock::locker locker)
{
    const auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, work(locker, 2200ms), asio::detached);
    asio::co_spawn(executor, work(locker, 10ms), asio::detached);

    const auto forgotten = co_await locker.acquire("forgotten", {.ttl = 1500ms});
    const auto stuck = co_await locker.acquire("stuck");
    co_await rest(1800ms);
    co_await locker.break_lock("stuck");
    co_await rest(1s);
    co_await locker.shutdown();
}

int main()
{
    asio::io_context io;
    // The observer is also notified of the backend: with a remote backend, of lost and restored connections.
    colock::locker locker(colock::memory::make_adapter(io.get_executor()), {.observer = std::make_shared<timeline>()});
    asio::co_spawn(io, run(std::move(locker)), asio::detached);
    io.run();
}
