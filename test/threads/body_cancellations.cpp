// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "pool.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(body_cancellations)

namespace {

asio::awaitable<void> until(const std::function<bool()>& reached)
{
    while (!reached())
        co_await asio::post(asio::deferred);
}

/// A `with_lock` on its own strand, whose body continues until it has been cancelled often enough.
struct persistent_call
{
    asio::strand<asio::io_context::executor_type> strand;
    std::string key;
    unsigned expected;
    asio::cancellation_signal cancel{};
    std::atomic<bool> inside{false};
    std::atomic<unsigned> cancellations{0};
    std::atomic<bool> ended{false};
    bool was_inside_at_its_end = false;
    error_code result{};

    static asio::awaitable<void> run_body(persistent_call& self)
    {
        struct leave_guard
        {
            std::atomic<bool>& inside;
            ~leave_guard() { inside = false; }
        };
        self.inside = true;
        const leave_guard at_end{self.inside};
        lease_timer timer(co_await asio::this_coro::executor);
        while (self.cancellations < self.expected) {
            timer.expires_after(24h);
            static_cast<void>(co_await timer.async_wait(asio::as_tuple(asio::deferred)));
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            ++self.cancellations;
        }
    }

    static void start(const std::shared_ptr<persistent_call>& self, const locker& by, bool async_form)
    {
        const auto body = [self] { return run_body(*self); };
        auto handler = asio::bind_cancellation_slot(
            self->cancel.slot(), asio::bind_executor(self->strand, [self](std::exception_ptr failure) {
                self->was_inside_at_its_end = self->inside;
                try {
                    if (failure)
                        std::rethrow_exception(failure);
                } catch (const boost::system::system_error& failed) {
                    self->result = failed.code();
                }
                self->ended = true;
            }));
        if (async_form)
            asio::post(self->strand, [by, key = self->key, body, handler = std::move(handler)]() mutable {
                by.async_with_lock(key, body, std::move(handler));
            });
        else
            asio::co_spawn(self->strand, by.with_lock(self->key, body), std::move(handler));
    }

    static void post_cancellation(const std::shared_ptr<persistent_call>& self)
    {
        asio::post(self->strand, [self] { self->cancel.emit(asio::cancellation_type::terminal); });
    }
};

asio::awaitable<void> check_each_reason_is_reported(asio::io_context& io, locker by, locker administrator,
    std::string key, bool caller_first, bool async_form, std::atomic<int>& ready)
{
    const auto call = std::make_shared<persistent_call>(asio::make_strand(io), std::move(key), 4U);
    persistent_call::start(call, by, async_form);
    co_await until([&] { return call->inside.load(); });
    if (caller_first) {
        persistent_call::post_cancellation(call);
        co_await until([&] { return call->cancellations == 1U; });
    }
    static_cast<void>(co_await administrator.break_lock(call->key));
    co_await until([&] { return call->cancellations == (caller_first ? 2U : 1U); });
    for (unsigned n = caller_first ? 3 : 2; n <= 3; ++n) {
        persistent_call::post_cancellation(call);
        co_await until([&] { return call->cancellations == n; });
    }
    // The fourth reason is the shutdown.
    ++ready;
    co_await until([&] { return call->ended.load(); });
    if (call->was_inside_at_its_end || call->result != errc::lost)
        throw std::logic_error("the end of with_lock");
}

} // namespace

BOOST_AUTO_TEST_CASE(each_reason_reaches_the_body_on_another_thread)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const bool async_form : {false, true}) {
            asio::io_context io(static_cast<int>(pool_size));
            const auto backend = make_backend(io, kind);
            const locker by(backend), administrator(backend);
            results outcome;
            std::atomic<int> ready{0};
            for (int n = 0; n < workers; ++n) {
                asio::co_spawn(asio::make_strand(io),
                    check_each_reason_is_reported(
                        io, by, administrator, std::to_string(n), n % 2 == 0, async_form, ready),
                    outcome.handler());
            }
            const auto shut_down_at_the_end = [&]() -> asio::awaitable<void> {
                co_await until([&] { return ready == workers; });
                const auto report = co_await by.shutdown();
                if (!report.clean())
                    throw std::logic_error("not clean");
            };
            asio::co_spawn(asio::make_strand(io), shut_down_at_the_end(), outcome.handler());
            BOOST_TEST(run_pool(io));
            BOOST_TEST(outcome.ended == workers + 1);
            BOOST_TEST(outcome.failed == 0);
            check_idle(by);
        }
    }
}

BOOST_AUTO_TEST_CASE(no_call_ends_before_its_body_while_it_is_cancelled_from_several_threads)
{
    const auto work = [](asio::io_context& io, locker by, locker administrator, std::string key,
                          bool async_form) -> asio::awaitable<void> {
        for (unsigned n = 0; n < rounds; ++n) {
            const auto call = std::make_shared<persistent_call>(asio::make_strand(io), key, 1 + n % 2);
            persistent_call::start(call, by, async_form);
            // Some calls are cancelled before they have begun.
            if (n % 3 != 0)
                co_await until([&] { return call->inside.load(); });
            persistent_call::post_cancellation(call);
            static_cast<void>(co_await administrator.break_lock(key));
            while (!call->ended) {
                persistent_call::post_cancellation(call);
                co_await asio::post(asio::deferred);
            }
            if (call->was_inside_at_its_end)
                throw std::logic_error("it ended before its body");
        }
    };
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const bool async_form : {false, true}) {
            asio::io_context io(static_cast<int>(pool_size));
            const auto backend = make_backend(io, kind);
            const locker by(backend), administrator(backend);
            results outcome;
            for (int n = 0; n < workers; ++n) {
                asio::co_spawn(asio::make_strand(io), work(io, by, administrator, std::to_string(n), async_form),
                    outcome.handler());
            }
            BOOST_TEST(run_pool(io));
            BOOST_TEST(outcome.ended == workers);
            BOOST_TEST(outcome.failed == 0);
            check_idle(by);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
