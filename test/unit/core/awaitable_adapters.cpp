// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

constexpr auto never = lease_clock::time_point::max();

/// An adapter that records its calls. Its waits last until they are notified or cancelled.
class waiting_adapter : public awaitable_adapter
{
public:
    using awaitable_adapter::awaitable_adapter;

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = "waiting", .capabilities = {.events = true}};
    }

    void tell()
    {
        for (auto* each : listening)
            each->cancel();
    }

    std::vector<std::string> log;
    std::vector<lease_timer*> listening;
    std::optional<errc> release_fails, create_fails;

protected:
    asio::awaitable<create_outcome> do_create(claim_ptr) override
    {
        log.emplace_back("create");
        if (create_fails)
            throw boost::system::system_error(*create_fails);
        co_return create_outcome::granted(0);
    }
    asio::awaitable<release_outcome> do_release(claim_ptr, release_guarantee guarantee) override
    {
        const bool settles = guarantee == release_guarantee::settled;
        log.emplace_back(settles ? "settle" : "release");
        if (release_fails)
            throw boost::system::system_error(*release_fails);
        co_return release_outcome{settles ? release_status::not_held : release_status::released};
    }
    asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
    {
        co_return extend_outcome{};
    }
    asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override { co_return valid_outcome{true}; }
    asio::awaitable<void> do_wait(claim_ptr claim, lease_clock::time_point) override
    {
        struct listener
        {
            waiting_adapter& self;
            lease_timer notified;
            listener(waiting_adapter& adapter) : self(adapter), notified(adapter.executor(), never)
            {
                self.listening.push_back(&notified);
            }
            ~listener() { std::erase(self.listening, &notified); }
        } mine(*this);
        log.push_back("listens: " + claim->key());
        const auto cancellation = co_await asio::this_coro::cancellation_state;
        co_await mine.notified.async_wait(asio::as_tuple(asio::deferred));
        log.emplace_back(cancellation.cancelled() != asio::cancellation_type::none ? "cancelled" : "notified");
    }
};

/// An adapter with the default `do_wait`.
class default_adapter final : public waiting_adapter
{
public:
    using waiting_adapter::waiting_adapter;

protected:
    asio::awaitable<void> do_wait(claim_ptr claim, lease_clock::time_point until) override
    {
        return awaitable_adapter::do_wait(std::move(claim), until);
    }
};

/// An executor that runs out of memory on request.
struct limited_executor
{
    asio::io_context::executor_type inner;
    const bool* is_exhausted;

    bool operator==(const limited_executor&) const noexcept = default;
    [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept { return inner.context(); }
    [[nodiscard]] limited_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class Function>
    void execute(Function function) const
    {
        if (*is_exhausted)
            throw std::bad_alloc();
        asio::post(inner, std::move(function));
    }
};

struct fixture
{
    asio::io_context io;
    std::shared_ptr<waiting_adapter> backend = std::make_shared<waiting_adapter>(io.get_executor());
    claim_ptr claim = driver::exclusive("k");
    std::vector<int> woken_waits;

    void wait(int number)
    {
        backend->start_wait(
            claim, never, [this, number, kept = claim](wait_outcome) { woken_waits.push_back(number); });
    }
    void check_log(const std::vector<std::string>& expected)
    {
        BOOST_TEST(backend->log == expected, boost::test_tools::per_element());
    }
    void check_woken(const std::vector<int>& expected)
    {
        BOOST_TEST(woken_waits == expected, boost::test_tools::per_element());
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(awaitable_adapters, fixture)

BOOST_AUTO_TEST_CASE(a_wait_ends_when_its_coroutine_does)
{
    wait(1);
    run_ready(io);
    check_woken({});
    backend->tell();
    run_ready(io);
    check_woken({1});
    check_log({"listens: k", "notified"});
    // Nothing is left to be cancelled.
    backend->cancel_wait(*claim);
    run_ready(io);
    BOOST_TEST(io.poll() == 0U);
}

BOOST_AUTO_TEST_CASE(cancelled_wait_ends_without_a_notification)
{
    wait(1);
    run_ready(io);
    backend->cancel_wait(*claim);
    // The cancellation is never processed inside the call, because the call may come from any thread.
    check_log({"listens: k"});
    run_ready(io);
    check_log({"listens: k", "cancelled"});
    check_woken({});
    BOOST_TEST(backend->listening.empty());
    // The completion was destroyed with everything it owned.
    BOOST_TEST(backend.use_count() == 1);
    io.restart();
    BOOST_TEST(io.run() == 0U);
}

BOOST_AUTO_TEST_CASE(a_wait_that_was_cancelled_without_memory_ends_at_the_next_opportunity)
{
    const auto other = driver::exclusive("other");
    for (const bool by_close : {true, false}) {
        bool is_exhausted = false;
        backend = std::make_shared<waiting_adapter>(limited_executor{io.get_executor(), &is_exhausted});
        wait(1);
        run_ready(io);
        is_exhausted = true;
        backend->cancel_wait(*claim);
        is_exhausted = false;
        run_ready(io);
        check_log({"listens: k"});
        if (by_close) {
            run_coro(io, backend->close(1s));
            run_ready(io);
        } else {
            backend->start_wait(other, never, [](wait_outcome) {});
            run_ready(io);
            BOOST_TEST(backend->listening.size() == 1U);
            backend->cancel_wait(*other);
            run_ready(io);
        }
        BOOST_TEST(backend->listening.empty());
        BOOST_TEST(std::ranges::count(backend->log, "cancelled") == (by_close ? 1 : 2));
        check_woken({});
    }
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_cancelled_before_it_began_ends)
{
    wait(1);
    backend->cancel_wait(*claim);
    run_ready(io);
    check_woken({});
    BOOST_TEST(backend->listening.empty());
    io.restart();
    BOOST_TEST(io.run() == 0U);
}

BOOST_AUTO_TEST_CASE(notified_wait_that_is_cancelled_at_the_same_time_is_not_reported)
{
    wait(1);
    run_ready(io);
    backend->tell();
    backend->cancel_wait(*claim);
    run_ready(io);
    check_woken({});
}

BOOST_AUTO_TEST_CASE(another_wait_may_begin_at_once)
{
    wait(1);
    run_ready(io);
    backend->cancel_wait(*claim);
    wait(2);
    run_ready(io);
    BOOST_TEST(backend->listening.size() == 1U);
    check_woken({});
    backend->tell();
    run_ready(io);
    check_woken({2});
}

BOOST_AUTO_TEST_CASE(waits_of_several_claims_are_independent)
{
    const auto other = driver::exclusive("other");
    wait(1);
    backend->start_wait(other, never, [this](wait_outcome) { woken_waits.push_back(2); });
    run_ready(io);
    backend->cancel_wait(*claim);
    run_ready(io);
    backend->tell();
    run_ready(io);
    check_woken({2});
}

BOOST_AUTO_TEST_CASE(a_wait_keeps_its_adapter_and_ends_with_its_context)
{
    std::optional<asio::io_context> gone(std::in_place);
    auto brief = std::make_shared<waiting_adapter>(gone->get_executor());
    const std::weak_ptr watched(brief);
    brief->start_wait(claim, never, [this](wait_outcome) { woken_waits.push_back(1); });
    brief->start_wait(driver::exclusive("other"), never, [this](wait_outcome) { woken_waits.push_back(2); });
    run_ready(*gone);
    brief->cancel_wait(*claim);
    brief.reset();
    BOOST_TEST(!watched.expired());
    gone.reset();
    BOOST_TEST(watched.expired());
    check_woken({});
}

BOOST_AUTO_TEST_CASE(default_wait_ends_at_the_given_time)
{
    virtual_clock clock;
    const auto plain = std::make_shared<default_adapter>(io.get_executor());
    plain->start_wait(claim, lease_clock::now() + 10s, [this](wait_outcome) { woken_waits.push_back(1); });
    jump(io, 9s);
    check_woken({});
    jump(io, 1s);
    check_woken({1});
    plain->start_wait(claim, lease_clock::now() + 10s, [this](wait_outcome) { woken_waits.push_back(2); });
    plain->cancel_wait(*claim);
    jump(io, 11s);
    check_woken({1});
}

BOOST_AUTO_TEST_CASE(by_default_a_hand_over_is_a_release_and_a_create)
{
    const driver env(io, backend);
    const auto next = driver::exclusive("k");
    auto outcome = env.hand_over(claim, next);
    BOOST_TEST(outcome.released.status == release_status::released);
    BOOST_TEST(outcome.created.status == create_status::granted);
    claim->mark_in_doubt();
    outcome = env.hand_over(claim, next);
    BOOST_TEST(outcome.released.status == release_status::not_held);
    check_log({"release", "create", "settle", "create"});
}

BOOST_AUTO_TEST_CASE(each_part_of_a_hand_over_fails_independently)
{
    const driver env(io, backend);
    const auto next = driver::exclusive("k");
    backend->release_fails = errc::outcome_unknown;
    auto outcome = env.hand_over(claim, next);
    BOOST_TEST(outcome.released.status == release_status::failed);
    BOOST_TEST_REQUIRE((outcome.released.error != nullptr));
    BOOST_TEST(outcome.released.error->code == errc::outcome_unknown);
    BOOST_TEST(outcome.created.status == create_status::granted);
    backend->release_fails.reset();
    backend->create_fails = errc::unavailable;
    outcome = env.hand_over(claim, next);
    BOOST_TEST(outcome.released.status == release_status::released);
    BOOST_TEST(outcome.created.status == create_status::failed);
    BOOST_TEST_REQUIRE((outcome.created.error != nullptr));
    BOOST_TEST(outcome.created.error->code == errc::unavailable);
}

BOOST_AUTO_TEST_CASE(by_default_nothing_is_listed_and_nothing_is_to_be_closed)
{
    for (const auto action : {listing_action::list, listing_action::break_key, listing_action::purge}) {
        const auto outcome = run_coro(io, backend->listing({.action = action, .filter = {.key = "k"}}));
        BOOST_TEST_REQUIRE((outcome.error != nullptr));
        BOOST_TEST(outcome.error->code == errc::unsupported);
        BOOST_TEST(outcome.error->detail == "waiting cannot list its locks");
    }
    run_coro(io, backend->close(1s));
}

BOOST_AUTO_TEST_SUITE_END()
