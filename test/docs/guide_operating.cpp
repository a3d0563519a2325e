// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guide.hpp"
#include "support/instrumented_adapter.hpp"

#include <colock/logging_observer.hpp>
#include <colock/metrics.hpp>
#include <colock/observer_list.hpp>

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <exception>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

//[ busy_or_down
// Work that one process at a time does. Returns false if the lock is still busy after 10 s. An unavailable lock service
// is reported by an exception.
asio::awaitable<bool> rebuild_index(colock::locker locker)
{
    co_return co_await locker.try_with_lock(
        "index", 10s, [](colock::lock& held) -> asio::awaitable<void> { co_await write_index(held.fence()); });
}
//]

//[ strand
// Every coroutine that may be cancelled gets its own strand. The locker and the lock need no strand.
void start_jobs(asio::thread_pool& pool, colock::locker locker, std::atomic<int>& done)
{
    for (int job = 0; job < 8; ++job) {
        const auto work = [](colock::locker jobs, std::atomic<int>& count) -> asio::awaitable<void> {
            colock::lock lock = co_await jobs.async_acquire("job", asio::cancel_after(30s));
            ++count;
            co_await lock.release();
        };
        // An exception that leaves a handler on a thread_pool would end the program.
        asio::co_spawn(asio::make_strand(pool), work(locker, done), [](std::exception_ptr failure) {
            if (failure)
                std::clog << "a job failed\n";
        });
    }
}
//]

//[ observer
class slow_locks : public colock::observer
{
public:
    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds waited) noexcept override
    {
        if (waited > 100ms)
            ++slow_;
    }
    void lost(std::string_view, colock::lost_reason, std::chrono::nanoseconds) noexcept override { ++losses_; }
    void unreachable(std::string_view, const colock::error_code&, std::string_view, std::string_view) noexcept override
    {
        ++failures_;
    }
    int slow() const noexcept { return slow_; }
    int losses() const noexcept { return losses_; }
    int failures() const noexcept { return failures_; }

private:
    std::atomic<int> slow_{0};
    std::atomic<int> losses_{0};
    std::atomic<int> failures_{0};
};

colock::locker make_observed(const asio::any_io_executor& executor, std::shared_ptr<slow_locks> watcher)
{
    return colock::locker(
        colock::memory::make_adapter(executor), {.ttl = 10s, .owner = "billing", .observer = std::move(watcher)});
}
//]

//[ logging_and_metrics
// A locker that logs its problems and counts its events.
colock::locker make_watched(std::shared_ptr<colock::adapter> backend, std::shared_ptr<colock::metrics> counted)
{
    const colock::logging_options problems{.level = colock::log_level::warning, .format = colock::log_format::json};
    const auto log = std::make_shared<colock::logging_observer>(std::clog, problems);
    return colock::locker(std::move(backend), {.observer = std::make_shared<colock::observer_list>(log, counted)});
}

// The body of the answer to Prometheus. Its header Content-Type is colock::metrics::content_type.
std::string scrape(
    const colock::metrics& counted, const colock::locker& locker, const std::shared_ptr<colock::adapter>& backend)
{
    return counted.text({locker}, {backend});
}
//]

//[ pages
// The locks are returned in pages, so that a large number of locks does not block the event loop.
asio::awaitable<std::size_t> count_old_locks(colock::locker locker)
{
    const colock::filter old{.created_before = std::chrono::system_clock::now() - 1h};
    std::size_t count = 0;
    colock::lock_page page;
    do {
        page = co_await locker.list_page(old, std::move(page.next));
        count += page.locks.size();
    } while (!page.next.empty());
    co_return count;
}
//]

//[ background_purge
colock::locker make_purging(std::shared_ptr<colock::adapter> backend)
{
    return colock::locker(std::move(backend), {.purge = colock::background_purge{.interval = 1min, .limit = 100}});
}
//]

//[ shutdown
asio::awaitable<bool> stop(colock::locker locker)
{
    const colock::shutdown_report report = co_await locker.shutdown(5s);
    for (const std::string& key : report.still_running)
        std::clog << "left to its ttl: " << key << '\n';
    co_return report.clean();
}
//]

} // namespace

BOOST_FIXTURE_TEST_SUITE(guide, fixture)

BOOST_AUTO_TEST_CASE(busy_or_down)
{
    const auto script =
        std::make_shared<colock::testing::instrumented_adapter>(colock::memory::make_adapter(io.get_executor()));
    const auto watcher = std::make_shared<slow_locks>();
    colock::locker remote(script, {.observer = watcher});
    BOOST_TEST(run(rebuild_index(remote)));

    colock::lock busy = run(remote.acquire("index"));
    auto second = colock::testing::start(io, rebuild_index(remote));
    colock::testing::run_ready(io);
    jump(io, 11s);
    BOOST_TEST(!second.get(io));
    run(busy.release());

    using colock::testing::operation;
    script->always(operation::create, colock::testing::step::fail(colock::errc::unavailable, "nobody listens"));
    script->contact().set_down(colock::make_failure(colock::errc::unavailable, "nobody listens"), "here:1");
    auto third = colock::testing::start(io, rebuild_index(remote));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 11s, 500ms);
    BOOST_TEST_REQUIRE(third.done());
    BOOST_CHECK_THROW(third.get(io), colock::create_error);
    BOOST_TEST(watcher->failures() == 1);
}

BOOST_AUTO_TEST_CASE(observers)
{
    const auto watcher = std::make_shared<slow_locks>();
    colock::locker observed = make_observed(io.get_executor(), watcher);
    colock::lock first = run(observed.acquire("k"));
    auto second = colock::testing::start(io, observed.acquire("k"));
    colock::testing::run_ready(io);
    jump(io, 1s);
    run(first.release());
    colock::lock granted = second.get(io);
    BOOST_TEST(watcher->slow() == 1);
    BOOST_TEST(watcher->losses() == 0);
    jump(io, 11s);
    BOOST_TEST(watcher->losses() == 1);
}

BOOST_AUTO_TEST_CASE(metrics_of_a_logged_locker_count_its_grant)
{
    const auto backend = colock::memory::make_adapter(io.get_executor());
    const auto counted = std::make_shared<colock::metrics>();
    colock::locker watched = make_watched(backend, counted);
    const colock::lock held = run(watched.acquire("order:17"));
    const std::string text = scrape(*counted, watched, backend);
    BOOST_TEST(text.find("colock_acquires_total{prefix=\"order\",outcome=\"granted\"} 1\n") != text.npos);
    BOOST_TEST(text.find("colock_held 1\n") != text.npos);
    BOOST_TEST(text.find("colock_backend_up{backend=\"memory\"} 1\n") != text.npos);
}

BOOST_AUTO_TEST_CASE(pages)
{
    colock::lock held = run(locker.acquire("k", {.ttl = 0ms}));
    BOOST_TEST(run(count_old_locks(locker)) == 0U);
    jump(io, 2h);
    BOOST_TEST(run(count_old_locks(locker)) == 1U);
    run(held.release());
}

BOOST_AUTO_TEST_CASE(background_purge)
{
    const auto purging = make_purging(colock::memory::make_adapter(io.get_executor()));
    colock::testing::run_ready(io);
    BOOST_TEST(run(purging.is_locked(colock::locker::purge_key)));
    BOOST_TEST(run(purging.shutdown()).clean());
}

BOOST_AUTO_TEST_CASE(shutting_down)
{
    colock::lock held = run(locker.acquire("k"));
    auto waiting = colock::testing::start(io, locker.acquire("k"));
    colock::testing::run_ready(io);
    BOOST_TEST(run(stop(locker)));
    BOOST_TEST(!held.held());
    try {
        static_cast<void>(waiting.get(io));
        BOOST_ERROR("acquire did not end with an error");
    } catch (const colock::error& failure) {
        BOOST_TEST(failure.code() == colock::errc::shutting_down);
    }
    BOOST_TEST(code_of(locker.acquire("k")) == colock::errc::shutting_down);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(guide_threads)

BOOST_AUTO_TEST_CASE(strands)
{
    asio::thread_pool pool(2);
    colock::locker locker(colock::memory::make_adapter(pool.get_executor()));
    std::atomic<int> done{0};
    start_jobs(pool, locker, done);
    pool.join();
    BOOST_TEST(done == 8);
}

BOOST_AUTO_TEST_CASE(futures)
{
    asio::thread_pool pool(1);
    colock::locker locker(colock::memory::make_adapter(pool.get_executor()));
    //[ future
    // Called on a thread that does not run the context. It blocks until the lock is granted.
    std::future<colock::lock> granted = locker.async_acquire("report", asio::use_future);
    colock::lock lock = granted.get();
    //]
    BOOST_TEST(lock.held());
    lock = colock::lock();
    pool.join();
}

BOOST_AUTO_TEST_CASE(context_of_callers_is_declared_before_the_context_of_the_locker)
{
    colock::lock held; // may outlive its context
    // The pool may also be destroyed before it runs the coroutine again.
    std::atomic<int> other_ends{0};
    const auto note = [&other_ends](const std::exception_ptr& failure, const colock::lock&) {
        if (!colock::is_shutting_down(failure))
            ++other_ends;
    };
    {
        //[ two_contexts
        // If the pool were declared after the context of the locker, it would be destroyed first, while its coroutine
        // waits. The locker would then resume a coroutine of a context that no longer exists.
        asio::thread_pool pool;
        asio::io_context io;
        colock::locker locker(colock::memory::make_adapter(io.get_executor()));
        //]
        held = run_coro(io, locker.acquire("report"));
        asio::co_spawn(pool, locker.acquire("report"), note);
        while (locker.stats().waiting == 0)
            std::this_thread::yield();
    }
    BOOST_TEST(other_ends == 0);
}

BOOST_AUTO_TEST_SUITE_END()
