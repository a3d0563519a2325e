// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guide.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

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
asio::awaitable<bool> refresh_cache_if_nobody_does(colock::locker locker)
{
    std::optional<colock::lock> lock = co_await locker.try_acquire("refresh");
    if (!lock)
        co_return false; // another process does the work
    co_await write_cache(lock->fence());
    co_await lock->release();
    co_return true;
}
//]

//[ moving
asio::awaitable<std::string> reserve(colock::locker locker)
{
    colock::lock seat = co_await locker.acquire("seat:7", {.ttl = 5min});
    co_await mark_reserved(7, seat.fence());
    co_return co_await seat.detach(); // the receiver of the ticket has the lock, until its TTL has passed
}

// In another process, which has received the ticket.
asio::awaitable<void> pay(colock::locker locker, std::string ticket)
{
    colock::lock seat = co_await locker.adopt(std::move(ticket), {.renewal = colock::renewal::automatic});
    co_await charge(7, seat.fence()); // higher than the fence before
    co_await seat.release();
}
//]

//[ election
// Returns when the locker is shut down. Pass the term to the resource: it is the fence of the leader's lock.
asio::awaitable<void> lead_index(colock::locker locker)
{
    const colock::election election(locker, "index", {.comment = "writes the index"});
    co_await election.lead([](colock::leadership& held) -> asio::awaitable<void> {
        for (;;)
            co_await write_index(held.term());
    });
}

// In any process.
asio::awaitable<std::string> name_of_leader(colock::locker locker)
{
    const std::optional<colock::leader> leader = co_await colock::election(locker, "index").leader();
    co_return leader ? leader->owner + " on " + leader->host : "nobody";
}
//]

//[ three_options
asio::awaitable<void> print_page(colock::locker locker)
{
    const colock::acquire_options options{
        .ttl = 10s,                            // how long others wait if this process dies
        .retry = colock::within(5s),           // waits for at most 5 s; without it, forever
        .renewal = colock::renewal::automatic, // keeps the lock until it is released, as with_lock does
    };
    colock::lock lock = co_await locker.acquire("printer", options);
    co_await draw_page();
    co_await lock.release();
}
//]

//[ shared
asio::awaitable<void> read_catalogue(colock::locker locker)
{
    colock::lock reading = co_await locker.acquire("catalogue", {.mode = colock::lock_mode::shared});
    co_await load_catalogue();
}

asio::awaitable<void> render(colock::locker locker)
{
    // At most four holders at once.
    colock::lock place = co_await locker.acquire("render", {.mode = colock::lock_mode::shared, .max_holders = 4});
    co_await draw_page();
}
//]

//[ group
asio::awaitable<void> transfer(colock::locker locker, std::string from, std::string to)
{
    std::vector<std::string> accounts{std::move(from), std::move(to)};
    colock::lock_group both = co_await locker.acquire_all(std::move(accounts));
    for (const colock::lock& each : both.locks())
        co_await write_record(each.key(), each.fence()); // a fence belongs to its key
    for (const colock::lock_report& each : co_await both.release())
        if (each.status == colock::errc::not_held)
            throw std::runtime_error("the lease of " + each.key + " had ended");
}
//]

//[ with_several
asio::awaitable<int> total_of_both(colock::locker locker, std::string one, std::string other)
{
    co_return co_await locker.with_lock(
        {"cart:" + one, "cart:" + other}, [](colock::lock_group& held) -> asio::awaitable<int> {
            for (const colock::lock& each : held.locks())
                co_await write_record(each.key(), each.fence());
            co_return co_await sum_of(1);
        });
}
//]

//[ group_by_id
// One process collects the locks of an order.
asio::awaitable<colock::lock_group> reserve(colock::locker locker, std::string order)
{
    colock::lock_group all = locker.group("order:" + order);
    co_await all.acquire("stock:apples");
    co_await all.acquire("stock:pears");
    co_return all;
}

// Another process, which only knows the order, releases all of them.
asio::awaitable<std::size_t> cancel(colock::locker locker, std::string order)
{
    const auto released = co_await locker.group("order:" + order).release();
    co_return released.size();
}
//]

//[ lost
// Without with_lock: the work checks the lock before each important step.
asio::awaitable<int> work_while_held(colock::lock& lock)
{
    int steps = 0;
    for (; lock.held(); ++steps)
        co_await write_step(steps, lock.fence());
    co_return steps;
}
//]

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

    BOOST_TEST(run(refresh_cache_if_nobody_does(locker)));
    colock::lock busy = run(locker.acquire("refresh"));
    BOOST_TEST(!run(refresh_cache_if_nobody_does(locker)));
}

BOOST_AUTO_TEST_CASE(options)
{
    run(print_page(locker));
    BOOST_TEST(!locked("printer"));

    // The wait ends after 5 s, although the lock is still held.
    colock::lock busy = run(locker.acquire("printer", {.ttl = 1min}));
    auto waiting = colock::testing::start(io, print_page(locker));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 4900ms, 100ms);
    BOOST_TEST(!waiting.done());
    virtual_clock::advance(io, 200ms, 100ms);
    BOOST_CHECK_THROW(waiting.get(io), colock::retry_error);
}

BOOST_AUTO_TEST_CASE(a_body)
{
    BOOST_TEST(run(total(locker, 7)) == 70);
    BOOST_CHECK_THROW(run(locker.with_lock("k", [] { throw std::out_of_range("mine"); })), std::out_of_range);
    BOOST_TEST(!locked("k"));

    // The body runs longer than the TTL, so the lease is renewed.
    auto renewed = colock::testing::start(io, locker.with_lock("k", {.ttl = 1s}, []() -> asio::awaitable<int> {
        colock::lease_timer timer(co_await asio::this_coro::executor, 10s);
        co_await timer.async_wait(asio::deferred);
        co_return 1;
    }));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 10s, 100ms);
    BOOST_TEST(renewed.get(io) == 1);

    // Without renewal, the body is cancelled before the lease can end.
    std::exception_ptr seen;
    auto stopped = colock::testing::start(
        io, locker.with_lock("k", {.ttl = 1s, .renewal = colock::renewal::manual}, [&]() -> asio::awaitable<void> {
            colock::lease_timer timer(co_await asio::this_coro::executor, 10s);
            try {
                co_await timer.async_wait(asio::deferred);
            } catch (...) {
                seen = std::current_exception();
                throw;
            }
        }));
    colock::testing::run_ready(io);
    jump(io, 500ms);
    BOOST_TEST(!seen);
    jump(io, 400ms);
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
    BOOST_TEST(run(total_of_both(locker, "1", "2")) == run(sum_of(1)));
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
    BOOST_TEST(locked("0")); // is held while the group waits for "a"
    run(a.release());
    BOOST_TEST(waiting.get(io).size() == 2);

    BOOST_TEST(code_of(locker.acquire_all(std::vector<std::string>{})) == colock::errc::invalid_options);
    colock::lock_group global = run(locker.acquire_global());
    BOOST_TEST(locked(colock::locker::global_key));
    BOOST_TEST(!locked("0"));
}

BOOST_AUTO_TEST_CASE(moving)
{
    const auto ticket = run(reserve(locker));
    BOOST_TEST(locked("seat:7"));
    BOOST_TEST(locker.held_locks().empty());
    run(pay(locker, ticket));
    BOOST_TEST(!locked("seat:7"));
    BOOST_TEST(code_of(locker.adopt(ticket)) == colock::errc::not_held);

    const auto late = run(reserve(locker));
    virtual_clock::skip(5min);
    BOOST_TEST(code_of(locker.adopt(late)) == colock::errc::not_held);
    BOOST_TEST(code_of(locker.adopt("ticket")) == colock::errc::invalid_options);
}

BOOST_AUTO_TEST_CASE(leading)
{
    BOOST_TEST(run(name_of_leader(locker)) == "nobody");
    auto leading = colock::testing::start(io, lead_index(locker));
    colock::testing::run_until(io, [&] { return !locker.held_locks().empty(); });
    const auto defaults = locker.defaults();
    BOOST_TEST(run(name_of_leader(locker)) == defaults.owner + " on " + defaults.host);
    run(locker.shutdown());
    BOOST_CHECK_NO_THROW(leading.get(io));
}

BOOST_AUTO_TEST_CASE(groups_by_their_id)
{
    colock::lock_group mine = run(reserve(locker, "7"));
    BOOST_TEST(locked("stock:pears"));
    BOOST_TEST(run(cancel(locker, "8")) == 0);
    BOOST_TEST(run(cancel(locker, "7")) == 2);
    BOOST_TEST(!locked("stock:pears"));
    BOOST_TEST(!mine.held());
    BOOST_TEST(run(cancel(locker, "7")) == 0);
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

BOOST_AUTO_TEST_SUITE_END()
