// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code that docs/adapters.md shows in addition to the example adapters.

#include "support/jump.hpp"
#include "support/print.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using colock::testing::jump;
using colock::testing::run_coro;

namespace {

/// Grants every request.
class granting_adapter : public colock::awaitable_adapter
{
public:
    using awaitable_adapter::awaitable_adapter;

    colock::adapter_traits traits() const noexcept override { return {.name = "granting"}; }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr) override
    {
        co_return colock::create_outcome::granted(0);
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr, colock::release_guarantee) override
    {
        co_return colock::release_outcome{};
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr, std::chrono::milliseconds) override
    {
        co_return colock::extend_outcome{};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr) override
    {
        co_return colock::valid_outcome{true};
    }
};

//[ session
// The locks of this adapter end with its session. The server ends a session that sends no heartbeat for
// `session_timeout`.
class session_adapter : public granting_adapter
{
public:
    using granting_adapter::granting_adapter;

    colock::adapter_traits traits() const noexcept override
    {
        return {.name = "session", .capabilities = {.no_ttl = true, .expires = false}};
    }

    // Called when a session is open. A new session has a new lease, so that locks of the old session stay lost.
    void on_connected(colock::lease_clock::time_point request_time)
    {
        session_ = std::make_shared<colock::session_lease>(request_time + session_timeout);
    }
    // Called when the server has answered a heartbeat that was sent at `request_time`, the earliest time from which the
    // heartbeat can count. Returns false if the lease of the session had ended already and the locks were reported as
    // lost.
    bool on_heartbeat(colock::lease_clock::time_point request_time)
    {
        return session_->extend(request_time + session_timeout);
    }
    // Called when the server does not answer. The session may survive: observers are notified that each held lock is at
    // risk.
    void on_silence() { contact().set_down(boost::asio::error::timed_out); }
    // Called when the server has reported the end of the session.
    void on_session_lost() { std::exchange(session_, nullptr)->end(); }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        if (!session_)
            co_return colock::create_outcome::failed(colock::make_failure(colock::errc::unavailable, "no session"));
        // Before the grant: the lease ends with the session at the latest, whatever its TTL.
        claim->lease().tie(session_);
        co_return co_await granting_adapter::do_create(std::move(claim));
    }

private:
    static constexpr auto session_timeout = std::chrono::seconds(10);
    std::shared_ptr<colock::session_lease> session_;
};
//]

//[ shutdown
// The timer of this adapter is not part of a coroutine, so the adapter destroys it when the context is destroyed.
class timer_adapter : public granting_adapter
{
public:
    explicit timer_adapter(const asio::any_io_executor& executor)
        : granting_adapter(executor), timer_(std::in_place, executor)
    {
    }

    void arm(std::chrono::milliseconds interval)
    {
        if (!timer_)
            return;
        timer_->expires_after(interval);
        timer_->async_wait([](const boost::system::error_code&) {});
    }

protected:
    void context_shutdown() noexcept override { timer_.reset(); }

private:
    std::optional<colock::lease_timer> timer_;
};
//]

} // namespace

BOOST_AUTO_TEST_SUITE(adapters_page)

BOOST_AUTO_TEST_CASE(locks_end_with_their_session)
{
    colock::testing::virtual_clock clock;
    asio::io_context io;
    const auto backend = std::make_shared<session_adapter>(io.get_executor());
    const colock::locker locker(backend);
    BOOST_CHECK_THROW(
        static_cast<void>(run_coro(io, locker.acquire("k", {.retry = colock::retry_policy::never()}))), colock::error);

    backend->on_connected(colock::lease_clock::now());
    const auto lock = run_coro(io, locker.acquire("k", {.ttl = 1h}));
    auto lost = colock::testing::start(io, lock.lost());
    jump(io, 8s);
    BOOST_TEST(backend->on_heartbeat(colock::lease_clock::now()));
    backend->on_silence();
    jump(io, 8s);
    BOOST_TEST(lock.held());
    jump(io, 3s);
    BOOST_TEST(!lock.held());
    BOOST_TEST(!backend->on_heartbeat(colock::lease_clock::now()));
    BOOST_TEST(lost.get(io) == colock::lost_reason::session);

    backend->on_connected(colock::lease_clock::now());
    const auto next = run_coro(io, locker.acquire("other", {.ttl = 1h}));
    BOOST_TEST(!lock.held());
    auto next_lost = colock::testing::start(io, next.lost());
    colock::testing::run_ready(io);
    backend->on_session_lost();
    BOOST_TEST(!next.held());
    BOOST_TEST(next_lost.get(io) == colock::lost_reason::session);
}

BOOST_AUTO_TEST_CASE(adapter_is_notified_of_the_shutdown_of_its_context)
{
    std::shared_ptr<timer_adapter> kept;
    {
        asio::io_context io;
        kept = std::make_shared<timer_adapter>(io.get_executor());
        kept->arm(1h);
        // An adapter that is destroyed before its context is not notified.
        std::make_shared<timer_adapter>(io.get_executor())->arm(1h);
    }
    BOOST_TEST(!kept->executor());
    kept->arm(1h);
}

BOOST_AUTO_TEST_SUITE_END()
