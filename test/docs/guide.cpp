// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// What docs/guide.md shows and says, compiled and run.

#include "support/print.hpp"
#include "support/run.hpp"
#include "support/scripted_adapter.hpp"
#include "support/virtual_clock.hpp"

#include <colock/colock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using colock::testing::run_coro;
using colock::testing::virtual_clock;

namespace {

asio::awaitable<void> charge(int, std::uint64_t)
{
    co_await asio::post(asio::deferred);
}
asio::awaitable<int> sum_of(int items)
{
    co_await asio::post(asio::deferred);
    co_return items * 10;
}

//[ acquire
asio::awaitable<void> checkout(colock::locker locker, int cart)
{
    colock::lock lock = co_await locker.acquire("cart:" + std::to_string(cart), {.ttl = 10s});
    co_await charge(cart, lock.fence()); // the resource refuses fences lower than the highest it has seen
    co_await lock.extend(10s);           // ten seconds from now
    co_await charge(cart, lock.fence());
    co_await lock.release();
}
//]

//[ with_lock
asio::awaitable<int> total(colock::locker locker, int cart)
{
    co_return co_await locker.with_lock(
        "cart:" + std::to_string(cart), [cart](colock::lock& held) -> asio::awaitable<int> {
            co_await charge(cart, held.fence());
            co_return co_await sum_of(cart);
        });
}
//]

//[ try
asio::awaitable<bool> refresh_if_nobody_does(colock::locker locker)
{
    std::optional<colock::lock> lock = co_await locker.try_acquire("refresh");
    if (!lock)
        co_return false; // somebody is at it
    co_await charge(0, lock->fence());
    co_await lock->release();
    co_return true;
}
//]

//[ shared
asio::awaitable<void> read_catalogue(colock::locker locker)
{
    colock::lock reading = co_await locker.acquire("catalogue", {.mode = colock::lock_mode::shared});
    co_await charge(0, reading.fence());
}

asio::awaitable<void> render(colock::locker locker)
{
    // At most four at once.
    colock::lock place = co_await locker.acquire("render", {.mode = colock::lock_mode::shared, .max_holders = 4});
    co_await charge(0, place.fence());
}
//]

//[ group
asio::awaitable<void> transfer(colock::locker locker, std::string from, std::string to)
{
    std::vector<std::string> accounts{std::move(from), std::move(to)};
    colock::lock_group both = co_await locker.acquire_all(std::move(accounts));
    co_await charge(1, both.locks().front().fence());
    for (const colock::lock_report& each : co_await both.release())
        if (each.status == colock::errc::not_held)
            throw std::runtime_error("the lease of " + each.key + " had ended");
}
//]

//[ retry
colock::retry_policy quick_then_patient()
{
    return colock::retry_policy::exponential(10ms, 2.0, 5s).jitter(0.3).total_time(1min);
}

colock::retry_policy three_more_attempts()
{
    return colock::retry_policy::fixed(200ms).times(3);
}

colock::retry_policy until_noon(colock::lease_clock::time_point noon)
{
    return colock::retry_policy::custom([noon](const colock::retry_attempt& attempt) -> colock::retry_decision {
        if (colock::lease_clock::now() >= noon)
            return colock::retry_stop;
        return attempt.number < 10 ? 100ms : 1s;
    });
}
//]

//[ busy_or_down
// A job that one of many does. Only "busy" means that another does it: a lock service that is down must be heard of.
asio::awaitable<bool> run_nightly(colock::locker locker)
{
    try {
        colock::lock lock =
            co_await locker.acquire("nightly", {.retry = colock::retry_policy::forever().total_time(10s)});
        co_await charge(0, lock.fence());
        co_return true;
    } catch (const colock::retry_error&) {
        co_return false;
    }
}
//]

//[ strand
// Every coroutine that may be cancelled gets a strand of its own; locker and lock need none.
void start_jobs(asio::thread_pool& pool, colock::locker locker, std::atomic<int>& done)
{
    for (int job = 0; job < 8; ++job) {
        const auto work = [](colock::locker jobs, std::atomic<int>& count) -> asio::awaitable<void> {
            colock::lock lock = co_await jobs.async_acquire("job", asio::cancel_after(30s));
            ++count;
            co_await lock.release();
        };
        asio::co_spawn(asio::make_strand(pool), work(locker, done), [](std::exception_ptr failure) {
            if (failure)
                std::rethrow_exception(failure);
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
    void lost(std::string_view, colock::lost_reason) noexcept override { ++losses_; }
    void unreachable(std::string_view, const colock::error_code&, std::string_view) noexcept override { ++failures_; }
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

//[ lost
// Without with_lock: the work asks before each step that matters.
asio::awaitable<int> work_while_held(colock::lock& lock)
{
    int steps = 0;
    for (; lock.held(); ++steps)
        co_await charge(steps, lock.fence());
    co_return steps;
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

struct fixture
{
    virtual_clock clock;
    asio::io_context io{1};
    colock::locker locker{colock::memory::make_adapter(io.get_executor())};

    template <class T>
    T run(asio::awaitable<T> coroutine)
    {
        return run_coro(io, std::move(coroutine));
    }
    bool locked(const std::string& key) { return run(locker.is_locked(key)); }
    template <class T>
    colock::error_code code_of(asio::awaitable<T> coroutine)
    {
        try {
            static_cast<void>(run(std::move(coroutine)));
        } catch (const boost::system::system_error& failure) {
            return failure.code();
        }
        return {};
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(guide, fixture)

BOOST_AUTO_TEST_CASE(locks)
{
    run(checkout(locker, 7));
    BOOST_TEST(!locked("cart:7"));

    {
        colock::lock dropped = run(locker.acquire("k"));
        BOOST_TEST(locked("k"));
    }
    colock::testing::run_ready(io);
    BOOST_TEST(!locked("k"));

    BOOST_TEST(run(refresh_if_nobody_does(locker)));
    colock::lock busy = run(locker.acquire("refresh"));
    BOOST_TEST(!run(refresh_if_nobody_does(locker)));
}

BOOST_AUTO_TEST_CASE(a_body)
{
    BOOST_TEST(run(total(locker, 7)) == 70);
    BOOST_CHECK_THROW(run(locker.with_lock("k", [] { throw std::out_of_range("mine"); })), std::out_of_range);
    BOOST_TEST(!locked("k"));

    // Longer than its ttl: renewed.
    auto renewed = colock::testing::start(io, locker.with_lock("k", {.ttl = 1s}, []() -> asio::awaitable<int> {
        colock::lease_timer timer(co_await asio::this_coro::executor, 10s);
        co_await timer.async_wait();
        co_return 1;
    }));
    colock::testing::run_ready(io);
    virtual_clock::advance_by_steps(io, 10s, 100ms);
    BOOST_TEST(renewed.get(io) == 1);

    // Without renewal: stopped a margin before the lease can end.
    std::exception_ptr seen;
    auto stopped = colock::testing::start(
        io, locker.with_lock("k", {.ttl = 1s, .renewal = colock::renewal::manual}, [&]() -> asio::awaitable<void> {
            colock::lease_timer timer(co_await asio::this_coro::executor, 10s);
            try {
                co_await timer.async_wait();
            } catch (...) {
                seen = std::current_exception();
                throw;
            }
        }));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 500ms);
    BOOST_TEST(!seen);
    virtual_clock::advance(io, 400ms);
    BOOST_TEST(!!seen);
    BOOST_CHECK_THROW(stopped.get(io), colock::lost_error);
}

BOOST_AUTO_TEST_CASE(sharing)
{
    colock::lock reading = run(locker.acquire("catalogue", {.mode = colock::lock_mode::shared}));
    run(read_catalogue(locker));
    BOOST_TEST(!run(locker.try_acquire("catalogue")));
    run(reading.release());
    BOOST_TEST(!!run(locker.try_acquire("catalogue")));

    std::vector<colock::lock> places;
    for (int i = 0; i < 4; ++i)
        places.push_back(run(locker.acquire("render", {.mode = colock::lock_mode::shared, .max_holders = 4})));
    auto fifth = colock::testing::start(io, render(locker));
    colock::testing::run_ready(io);
    BOOST_TEST(!fifth.done());
    places.pop_back();
    fifth.get(io);
}

BOOST_AUTO_TEST_CASE(groups)
{
    run(transfer(locker, "b", "a"));
    BOOST_TEST(!locked("a"));

    colock::lock_group sorted = run(locker.acquire_all({"b", "a", "b"}));
    BOOST_REQUIRE(sorted.size() == 2);
    BOOST_TEST(sorted.locks().front().key() == "a");
    run(sorted.acquire("c"));
    BOOST_TEST(run(sorted.release()).front().key == "c");

    colock::lock a = run(locker.acquire("a"));
    auto waiting = colock::testing::start(io, locker.acquire_all({"0", "a"}));
    colock::testing::run_ready(io);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(!locked("0")); // nothing is held while it waits
    run(a.release());
    BOOST_TEST(waiting.get(io).size() == 2);

    BOOST_TEST(code_of(locker.acquire_all(std::vector<std::string>{})) == colock::errc::invalid_options);
    colock::lock_group global = run(locker.acquire_global());
    BOOST_TEST(locked(colock::locker::global_key));
    BOOST_TEST(!locked("0"));
}

BOOST_AUTO_TEST_CASE(retries)
{
    colock::lock busy = run(locker.acquire("k", {.ttl = 0ms}));
    const auto end_of = [&](colock::retry_policy policy, colock::lease_clock::duration most) {
        auto waiting = colock::testing::start(io, locker.acquire("k", {.retry = std::move(policy)}));
        colock::testing::run_ready(io);
        virtual_clock::advance_by_steps(io, most, most / 64);
        BOOST_REQUIRE(waiting.done());
        try {
            static_cast<void>(waiting.get(io));
        } catch (const colock::retry_error& failure) {
            return failure.attempts();
        }
        return std::size_t{0};
    };
    BOOST_TEST(end_of(three_more_attempts(), 2s) == 4U);
    BOOST_TEST(end_of(quick_then_patient(), 61s) > 4U);
    BOOST_TEST(end_of(until_noon(colock::lease_clock::now() + 3s), 5s) > 10U);
    BOOST_TEST(end_of(colock::retry_policy::never(), 64ns) == 1U);
}

BOOST_AUTO_TEST_CASE(busy_or_down)
{
    const auto script =
        std::make_shared<colock::testing::scripted_adapter>(colock::memory::make_adapter(io.get_executor()));
    const auto watcher = std::make_shared<slow_locks>();
    colock::locker remote(script, {.observer = watcher});
    BOOST_TEST(run(run_nightly(remote)));

    colock::lock busy = run(remote.acquire("nightly"));
    auto second = colock::testing::start(io, run_nightly(remote));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 11s);
    BOOST_TEST(!second.get(io));
    run(busy.release());

    using colock::testing::operation;
    script->always(operation::create, colock::testing::step::fail(colock::errc::unavailable, "nobody listens"));
    script->notify_unreachable(colock::make_failure(colock::errc::unavailable, "nobody listens"), "here:1");
    auto third = colock::testing::start(io, run_nightly(remote));
    colock::testing::run_ready(io);
    virtual_clock::advance_by_steps(io, 11s, 500ms);
    BOOST_TEST_REQUIRE(third.done());
    BOOST_CHECK_THROW(third.get(io), colock::create_error);
    BOOST_TEST(watcher->failures() == 1);
}

BOOST_AUTO_TEST_CASE(cancellation)
{
    colock::lock busy = run(locker.acquire("k"));
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        asio::cancellation_signal signal;
        colock::error_code ended;
        locker.async_acquire(
            "k", asio::bind_cancellation_slot(signal.slot(), [&](colock::error_code failed, auto) { ended = failed; }));
        colock::testing::run_ready(io);
        signal.emit(type);
        colock::testing::run_ready(io);
        BOOST_TEST(ended == asio::error::operation_aborted);
    }

    // A plain verb honours what its coroutine lets through, which under co_spawn is terminal.
    asio::cancellation_signal signal;
    bool done = false;
    asio::co_spawn(io, locker.acquire("k"),
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr, colock::lock) { done = true; }));
    colock::testing::run_ready(io);
    signal.emit(asio::cancellation_type::total);
    colock::testing::run_ready(io);
    BOOST_TEST(!done);
    signal.emit(asio::cancellation_type::terminal);
    colock::testing::run_ready(io);
    BOOST_TEST(done);

    BOOST_TEST(locker.stats().waiting == 0U);
    run(busy.release());
    BOOST_TEST(!locked("k"));
}

BOOST_AUTO_TEST_CASE(errors)
{
    using colock::errc;
    BOOST_TEST(code_of(locker.acquire("")) == errc::invalid_key);
    BOOST_TEST(code_of(locker.acquire(std::string(513, 'k'))) == errc::invalid_key);
    BOOST_TEST(code_of(locker.acquire("k", {.ttl = -1ms})) == errc::invalid_ttl);
    BOOST_TEST(code_of(locker.acquire("k", {.ttl = 99ms})) == errc::invalid_ttl);
    BOOST_TEST(code_of(locker.acquire("k", {.retry = colock::retry_policy::fixed(-1s)})) == errc::invalid_retry);
    BOOST_TEST(code_of(locker.acquire("k", {.max_holders = 2})) == errc::invalid_options);

    colock::lock held = run(locker.acquire("k", {.ttl = 1s}));
    virtual_clock::advance(io, 2s);
    BOOST_TEST(!held.held());
    BOOST_TEST(code_of(held.extend(1s)) == errc::not_held);
    BOOST_TEST(code_of(held.release()) == colock::error_code());
    colock::lock late = run(locker.acquire("k", {.ttl = 1s}));
    virtual_clock::advance(io, 2s);
    BOOST_TEST(code_of(late.release(colock::on_failure::raise)) == errc::not_held);
    BOOST_TEST(code_of(late.release(colock::on_failure::raise)) == colock::error_code());
    colock::lock moved = std::move(late);
    BOOST_TEST(code_of(late.extend(1s)) == errc::invalid_options); // NOLINT(bugprone-use-after-move)
}

BOOST_AUTO_TEST_CASE(losses)
{
    colock::lock lock = run(locker.acquire("k", {.ttl = 1s}));
    auto reason = colock::testing::start(io, lock.lost());
    colock::testing::run_ready(io);
    auto work = colock::testing::start(io, work_while_held(lock));
    for (int i = 0; i < 100; ++i)
        io.poll_one();
    virtual_clock::skip(1s);
    BOOST_TEST(work.get(io) > 10);
    BOOST_CHECK(reason.get(io) == colock::lost_reason::expired);

    colock::lock fine = run(locker.acquire("k"));
    run(fine.release());
    BOOST_CHECK(run(fine.lost()) == colock::lost_reason::released);
}

BOOST_AUTO_TEST_CASE(observers)
{
    const auto watcher = std::make_shared<slow_locks>();
    colock::locker observed = make_observed(io.get_executor(), watcher);
    colock::lock first = run(observed.acquire("k"));
    auto second = colock::testing::start(io, observed.acquire("k"));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 1s);
    run(first.release());
    colock::lock granted = second.get(io);
    BOOST_TEST(watcher->slow() == 1);
    BOOST_TEST(watcher->losses() == 0);
    virtual_clock::advance(io, 11s);
    BOOST_TEST(watcher->losses() == 1);
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
        BOOST_ERROR("was to end");
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
    // From a thread that is no coroutine, and not one that runs the context: it blocks until the lock is granted.
    std::future<colock::lock> granted = locker.async_acquire("report", asio::use_future);
    colock::lock lock = granted.get();
    //]
    BOOST_TEST(lock.held());
    lock = colock::lock();
    pool.join();
}

BOOST_AUTO_TEST_SUITE_END()
