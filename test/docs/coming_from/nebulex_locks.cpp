// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

BOOST_AUTO_TEST_SUITE(from_nebulex_locks)

COLOCK_FIXTURE(memory_fixture, a_locker_is_passed_on_instead_of_a_name)
{
    colock::locker locks(colock::memory::make_adapter(io.get_executor()));
    colock::locker same = locks;
    colock::lock_group held = co_await locks.acquire_all({"key1", "key2"});
    BOOST_TEST(co_await same.is_locked("key1"));
    BOOST_TEST(same.held_locks().size() == 2U);
}

COLOCK_FIXTURE(memory_fixture, shutdown_instead_of_a_supervisor)
{
    colock::lock held = co_await locker.acquire("key1");
    colock::shutdown_report report = co_await locker.shutdown(5s);
    BOOST_TEST(report.clean());
    BOOST_TEST(!held.held());
    BOOST_TEST((co_await code_of(locker.acquire("key1")) == errc::shutting_down));
}

COLOCK_FIXTURE(memory_fixture, several_keys_at_once)
{
    colock::lock busy = co_await other.acquire("key2", {.ttl = 50s});
    BOOST_TEST((co_await code_of<colock::retry_error>(locker.acquire_all({"key2", "key1"},
                    {.retry = colock::retry_policy::fixed(10ms).times(5)})) == errc::retry_exhausted));
    BOOST_TEST(!co_await other.is_locked("key1"));
    co_await busy.release();
    colock::lock_group held = co_await locker.acquire_all({"key2", "key1"});
    BOOST_TEST(held.locks().front().key() == "key1");
    co_await held.release();
    BOOST_TEST(!co_await other.is_locked("key1"));
    BOOST_TEST(!co_await other.is_locked("key2"));
}

COLOCK_FIXTURE(memory_fixture, keys_that_are_read_and_keys_that_are_written)
{
    colock::lock_group held = co_await locker.acquire_all({"key1", {"key2", colock::lock_mode::shared}});
    colock::lock reading = co_await other.acquire("key2", {.mode = colock::lock_mode::shared});
    BOOST_TEST(!co_await other.try_acquire("key1", {.mode = colock::lock_mode::shared}));
    BOOST_TEST((co_await code_of<colock::validation_error>(
                    locker.acquire_all({"a", {"a", colock::lock_mode::shared}})) == errc::invalid_options));
}

COLOCK_FIXTURE(memory_fixture, the_global_lock)
{
    colock::lock_group held = co_await locker.acquire_global();
    BOOST_TEST((co_await code_of<colock::retry_error>(other.acquire_global({.retry = colock::retry_policy::never()})) ==
                errc::retry_exhausted));
    BOOST_TEST((co_await code_of<colock::validation_error>(locker.acquire_all(std::vector<std::string>{})) ==
                errc::invalid_options));
    // The global lock does not lock other keys.
    colock::lock key = co_await other.acquire("key1");
    BOOST_TEST(key.held());
}

COLOCK_FIXTURE(memory_fixture, an_exception_releases)
{
    BOOST_TEST((co_await code_of(locker.with_lock("key1", [] { throw boost::system::system_error(errc::lost); })) ==
                errc::lost));
    BOOST_TEST(!co_await other.is_locked("key1"));
    try {
        colock::lock_group held = co_await locker.acquire_all({"key1", "key2"});
        throw std::runtime_error("in the critical section");
    } catch (const std::runtime_error&) {
    }
    co_await pass(1ms);
    BOOST_TEST(!co_await other.is_locked("key1"));
    BOOST_TEST(!co_await other.is_locked("key2"));
}

COLOCK_FIXTURE(memory_fixture, a_release_needs_the_handle)
{
    colock::lock_group held = co_await locker.acquire_all({"key1", "key2"});
    std::vector<colock::lock_report> reports = co_await held.release();
    BOOST_TEST((keys_of(reports) == std::vector<std::string>{"key2", "key1"}));
    for (const colock::lock_report& each : reports)
        BOOST_TEST(!each.status);
}

COLOCK_FIXTURE(memory_fixture, an_administrator_releases_by_key)
{
    colock::lock held = co_await locker.acquire("key1");
    std::vector<colock::lock_status> removed = co_await other.break_lock("key1");
    BOOST_TEST(removed.size() == 1U);
    BOOST_TEST(!co_await held.is_locked());
}

COLOCK_FIXTURE(memory_fixture, caller_that_knows_the_id_releases_a_group)
{
    colock::lock_group held = co_await locker.acquire_all({"key1", "key2"});
    std::vector<colock::lock_report> reports = co_await other.group(held.id()).release();
    BOOST_TEST(reports.size() == 2U);
    BOOST_TEST(!co_await other.is_locked("key1"));
}

COLOCK_FIXTURE(memory_fixture, an_old_handle_cannot_release_anothers_lock)
{
    colock::lock old = co_await locker.acquire("key1", {.ttl = 1s});
    co_await pass(2s);
    colock::lock next = co_await other.acquire("key1");
    co_await old.release();
    BOOST_TEST(co_await next.is_locked());
}

COLOCK_FIXTURE(memory_fixture, a_lock_timeout)
{
    colock::lock stale = co_await other.acquire("key1", {.ttl = 30s});
    colock::lock lock = co_await locker.acquire("key1");
    BOOST_TEST(!stale.held());
    BOOST_TEST((locker.stats().waited_longest > 29s));
}

COLOCK_FIXTURE(memory_fixture, a_coroutine_that_is_destroyed_releases)
{
    asio::any_completion_handler<void()> pending;
    const auto work = [&](colock::locker locks) -> asio::awaitable<void> {
        colock::lock lock = co_await locks.acquire("key1", {.ttl = 0ms});
        co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
            [&](auto handler) { pending = std::move(handler); }, asio::use_awaitable);
        BOOST_ERROR("the coroutine was not destroyed");
    };
    asio::co_spawn(io, work(locker), asio::detached);
    co_await pass(1s);
    BOOST_TEST(co_await other.is_locked("key1"));
    pending = nullptr;
    colock::lock next = co_await other.acquire("key1");
    BOOST_TEST((other.stats().waited_longest < 1s));
}

COLOCK_FIXTURE(memory_fixture, expired_lock_does_not_block_the_next_acquire)
{
    colock::lock stale = co_await other.acquire("key1", {.ttl = 1s});
    co_await pass(2s);
    std::optional<colock::lock> lock = co_await locker.try_acquire("key1");
    BOOST_TEST(lock.has_value());
}

COLOCK_FIXTURE(memory_fixture, memory_sweeps_stale_locks)
{
    const auto swept = colock::memory::make_adapter(io.get_executor(), {.sweep_interval = 5min, .sweep_batch = 100});
    colock::locker locks(swept);
    std::vector<colock::lock> stale;
    for (int i = 0; i < 100; ++i)
        stale.push_back(co_await locks.acquire("key" + std::to_string(i), {.ttl = 1s}));
    co_await pass(6min);
    // Any operation also removes expired locks of other keys, so the purge finds none.
    colock::lock one = co_await locks.acquire("another");
    BOOST_TEST((co_await locks.purge()).empty());
}

COLOCK_FIXTURE(memory_fixture, a_purge_in_the_background)
{
    colock::locker locks(backend, {.purge = colock::background_purge{.interval = 5min, .limit = 100}});
    colock::lock stale = co_await other.acquire("key1", {.ttl = 1s});
    co_await pass(6min);
    BOOST_TEST((co_await other.purge()).empty());
}

COLOCK_FIXTURE(memory_fixture, a_callback_after_start_up)
{
    struct watcher : colock::observer
    {
        void ready(std::string_view backend) noexcept override { seen = backend; }
        std::string seen;
    };
    const auto listener = std::make_shared<watcher>();
    colock::locker locks(colock::memory::make_adapter(io.get_executor()), {.observer = listener});
    BOOST_TEST(listener->seen == "memory");
    co_return;
}

COLOCK_FIXTURE(memory_fixture, who_holds_what)
{
    colock::lock held = co_await other.acquire("key1", {.owner = "worker 7"});
    std::vector<colock::lock_status> entries = co_await locker.list();
    BOOST_TEST_REQUIRE(entries.size() == 1U);
    BOOST_TEST(entries.front().key == "key1");
    BOOST_TEST(entries.front().owner == "worker 7");
    BOOST_TEST(entries.front().created.has_value());
    BOOST_TEST((entries.front().remaining > 29s));
}

COLOCK_FIXTURE(memory_fixture, waiters_are_served_in_turn)
{
    colock::lock held = co_await locker.acquire("key1");
    std::string order;
    const auto wait = [&](char name) {
        locker.async_acquire("key1", [&order, name](colock::error_code, colock::lock) { order += name; });
    };
    for (char name : {'a', 'b', 'c'})
        wait(name);
    co_await pass(1s);
    co_await held.release();
    co_await pass(1s);
    BOOST_TEST(order == "abc");
}

COLOCK_FIXTURE(memory_fixture, a_key_is_text)
{
    colock::lock lock = co_await locker.acquire("user:" + std::to_string(42));
    BOOST_TEST((co_await code_of<colock::validation_error>(locker.acquire("")) == errc::invalid_key));
    BOOST_TEST(
        (co_await code_of<colock::validation_error>(locker.acquire(std::string(513, 'k'))) == errc::invalid_key));
}

BOOST_AUTO_TEST_SUITE_END()
