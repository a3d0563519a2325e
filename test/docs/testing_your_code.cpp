// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/testing-your-code.md. Uses only what is installed: no header of test/support.

#include <colock/colock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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

//[ run
// Runs a coroutine to its end. If the coroutine waits for an event that never happens, the test fails after ten
// seconds.
template <class T>
T run(asio::io_context& io, asio::awaitable<T> coroutine)
{
    std::future<T> result = asio::co_spawn(io, std::move(coroutine), asio::use_future);
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (result.wait_for(0s) != std::future_status::ready) {
        io.restart();
        if (io.run_one_until(deadline) == 0)
            throw std::runtime_error("the coroutine does not end");
    }
    return result.get();
}
//]

//[ fixture
// One store, and two lockers that represent two processes. An acquire by `mine` does not wait.
struct two_processes
{
    asio::io_context io;
    std::shared_ptr<colock::adapter> store = colock::memory::make_adapter(io.get_executor());
    colock::locker mine{store, {.retry = colock::retry_policy::never()}};
    colock::locker theirs{store, {.owner = "theirs"}};
};
//]

asio::awaitable<void> count_nothing(int, std::uint64_t)
{
    co_await asio::post(asio::deferred);
}

//[ down_adapter
// A backend that is down.
class down_adapter : public colock::awaitable_adapter
{
public:
    using awaitable_adapter::awaitable_adapter;

    colock::adapter_traits traits() const noexcept override { return {.name = "down"}; }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr) override
    {
        return fail<colock::create_outcome>();
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr, colock::release_guarantee) override
    {
        return fail<colock::release_outcome>();
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr, std::chrono::milliseconds) override
    {
        return fail<colock::extend_outcome>();
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr) override
    {
        return fail<colock::valid_outcome>();
    }

private:
    template <class Outcome>
    static asio::awaitable<Outcome> fail()
    {
        co_await asio::post(asio::deferred);
        throw boost::system::system_error(colock::errc::unavailable);
    }
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
    int counted = 0;
    const auto count = [&](int, std::uint64_t fence) -> asio::awaitable<void> {
        BOOST_TEST(fence > 0U);
        BOOST_TEST(co_await theirs.is_locked("stock"));
        ++counted;
    };
    BOOST_TEST(run(io, take_stock(mine, count)) == "done");
    BOOST_TEST(counted == 3);
    BOOST_TEST(!run(io, theirs.is_locked("stock")));
    //]
}

BOOST_AUTO_TEST_CASE(busy_lock_is_reported)
{
    //[ busy
    colock::lock held = run(io, theirs.acquire("stock"));
    BOOST_TEST(run(io, take_stock(mine, count_nothing)) == "busy");
    run(io, held.release());
    BOOST_TEST(run(io, take_stock(mine, count_nothing)) == "done");
    //]
}

BOOST_AUTO_TEST_CASE(lost_lock_stops_the_work)
{
    //[ lost
    int counted = 0;
    const auto count = [&](int shelf, std::uint64_t) -> asio::awaitable<void> {
        ++counted;
        if (shelf < 2)
            co_return;
        co_await mine.break_lock("stock");
        asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
        co_await timer.async_wait(asio::deferred); // is cancelled, because the lock is lost
    };
    BOOST_TEST(run(io, take_stock(mine, count)) == "lost");
    BOOST_TEST(counted == 2);
    //]
}

BOOST_AUTO_TEST_CASE(expired_lock_stops_the_work)
{
    //[ expired
    colock::locker brief(store, {.ttl = 100ms, .max_hold = 100ms});
    const auto hang = [](int, std::uint64_t) -> asio::awaitable<void> {
        asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
        co_await timer.async_wait(asio::deferred); // is cancelled shortly before the lock can end
    };
    BOOST_TEST(run(io, take_stock(brief, hang)) == "lost");
    //]
}

BOOST_AUTO_TEST_CASE(backend_that_is_down_is_reported)
{
    //[ down
    colock::locker cut_off(std::make_shared<down_adapter>(io.get_executor()), {.retry = colock::retry_policy::never()});
    BOOST_TEST(run(io, take_stock(cut_off, count_nothing)) == "unavailable");
    //]
}

BOOST_AUTO_TEST_CASE(late_write_is_refused)
{
    //[ fence
    colock::fence_gate gate; // stands for the resource of the program
    colock::lock paused = run(io, theirs.acquire("stock"));
    static_cast<void>(run(io, theirs.break_lock("stock")));
    colock::lock next = run(io, mine.acquire("stock"));
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
