// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/testing-your-code.md. Uses only what is installed: no header of test/support.

#include <colock/colock.hpp>
#include <colock/testing/history.hpp>
#include <colock/testing/scripted_adapter.hpp>
#include <colock/testing/virtual_clock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

//[ code
// The code that is tested. Its locker and its work are parameters.
asio::awaitable<std::string> take_stock(
    colock::locker locker, std::function<asio::awaitable<void>(int shelf, std::uint64_t fence)> count)
{
    try {
        co_await locker.with_lock("stock", [&](colock::lock& held) -> asio::awaitable<void> {
            for (int shelf = 1; shelf <= 3; ++shelf)
                co_await count(shelf, held.fence());
        });
        co_return "done";
    } catch (const colock::retry_error&) {
        co_return "busy";
    } catch (const colock::lost_error&) {
        co_return "lost";
    } catch (const colock::create_error&) {
        co_return "unavailable";
    }
}
//]

//[ fixture
namespace ct = colock::testing;

// One store, and two lockers that represent two processes. The backend of `mine` can fail.
struct two_processes
{
    ct::virtual_clock clock; // the first member, so that it is destroyed last
    asio::io_context io;
    ct::history history;
    std::shared_ptr<colock::adapter> store = colock::memory::make_adapter(io.get_executor());
    std::shared_ptr<ct::scripted_adapter> backend = std::make_shared<ct::scripted_adapter>(store);
    colock::locker mine{backend, {.retry = colock::within(5min)}};
    colock::locker theirs{store};
    int counted = 0;

    // The work takes one minute for each shelf, and is noted in the history.
    asio::awaitable<void> count(int, std::uint64_t fence)
    {
        const auto work = history.begin_work("stock", fence);
        colock::lease_timer timer(io, 1min);
        co_await timer.async_wait(asio::deferred);
        ++counted;
    }
    std::function<asio::awaitable<void>(int, std::uint64_t)> counting = std::bind_front(&two_processes::count, this);
};
//]

//[ answer
// The code that is tested: the seconds of the header Retry-After.
long seconds_to_wait(const colock::retry_error& busy)
{
    return std::chrono::ceil<std::chrono::seconds>(busy.retry_after().value_or(1s)).count();
}
//]

} // namespace

BOOST_FIXTURE_TEST_SUITE(testing_your_code, two_processes)

BOOST_AUTO_TEST_CASE(work_is_done_under_the_lock)
{
    //[ done
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "done");
    BOOST_TEST(counted == 3);
    BOOST_TEST(!clock.run(io, theirs.is_locked("stock")));
    BOOST_TEST(history.check() == "");
    //]
}

BOOST_AUTO_TEST_CASE(two_processes_do_not_work_at_once)
{
    //[ at_once
    asio::co_spawn(io, take_stock(theirs, counting), asio::detached);
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "done");
    BOOST_TEST(counted == 6);
    BOOST_TEST(history.check() == ""); // the work of the two has not overlapped
    //]
}

BOOST_AUTO_TEST_CASE(busy_lock_is_reported)
{
    //[ busy
    colock::lock held = clock.run(io, theirs.acquire("stock", {.ttl = 1h}));
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "busy"); // after five minutes of virtual time
    clock.run(io, held.release());
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "done");
    //]
}

BOOST_AUTO_TEST_CASE(backend_that_is_down_is_reported)
{
    //[ down
    backend->disconnect();
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "unavailable");
    backend->reconnect();
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "done");
    //]
}

BOOST_AUTO_TEST_CASE(outage_is_survived)
{
    //[ outage
    std::string result;
    asio::co_spawn(io, take_stock(mine, counting), [&](std::exception_ptr, std::string text) { result = text; });
    clock.advance(io, 90s);
    backend->disconnect();
    clock.advance(io, 15s); // shorter than the lease
    BOOST_TEST(mine.stats().renewal_errors > 0U);
    backend->reconnect();
    clock.run_until(io, [&] { return !result.empty(); });
    BOOST_TEST(result == "done");
    //]
}

BOOST_AUTO_TEST_CASE(unknown_outcome_is_resolved)
{
    //[ unknown
    backend->next(ct::operation::create, ct::step::lose_reply());
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "done");
    BOOST_TEST(backend->unused_count() == 0U);
    BOOST_TEST(backend->count(ct::operation::create) == 2U);
    BOOST_TEST(history.check() == "");
    //]
}

BOOST_AUTO_TEST_CASE(lost_lock_stops_the_work)
{
    //[ lost
    const auto count_and_lose = [&](int shelf, std::uint64_t fence) -> asio::awaitable<void> {
        if (shelf == 2)
            co_await theirs.break_lock("stock");
        co_await count(shelf, fence);
    };
    BOOST_TEST(clock.run(io, take_stock(mine, count_and_lose)) == "lost");
    BOOST_TEST(counted == 1);
    //]
}

BOOST_AUTO_TEST_CASE(expired_lock_stops_the_work)
{
    //[ expired
    const auto count_and_disconnect = [&](int shelf, std::uint64_t fence) -> asio::awaitable<void> {
        if (shelf == 2)
            backend->disconnect();
        co_await count(shelf, fence);
    };
    BOOST_TEST(clock.run(io, take_stock(mine, count_and_disconnect)) == "lost");
    BOOST_TEST(counted == 1);
    //]
}

BOOST_AUTO_TEST_CASE(failed_release_is_finished_in_the_background)
{
    //[ release
    backend->next(ct::operation::release, ct::step::fail(colock::errc::unavailable));
    BOOST_TEST(clock.run(io, take_stock(mine, counting)) == "done");
    BOOST_TEST(backend->unused_count() == 0U);
    BOOST_TEST(clock.run(io, take_stock(theirs, counting)) == "done");
    BOOST_TEST(history.check() == "");
    //]
}

BOOST_AUTO_TEST_CASE(late_write_is_refused)
{
    //[ fence
    colock::fence_gate gate; // stands for the resource of the program
    colock::lock paused = clock.run(io, mine.acquire("stock"));
    clock.skip(1min); // the process is paused for longer than its ttl
    BOOST_TEST(!paused.held());
    colock::lock next = clock.run(io, theirs.acquire("stock"));
    BOOST_TEST(gate.admit(next));
    BOOST_TEST(!gate.admit(paused));
    //]
}

BOOST_AUTO_TEST_CASE(retry_after_of_a_constructed_error_is_rounded_up)
{
    //[ exception
    const colock::retry_error busy(colock::errc::retry_exhausted, {.key = "stock", .retry_after = 2500ms});
    BOOST_TEST(seconds_to_wait(busy) == 3);
    //]
}

BOOST_AUTO_TEST_SUITE_END()
