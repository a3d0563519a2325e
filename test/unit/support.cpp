// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/scripted_adapter.hpp"
#include "support/virtual_clock.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <stdexcept>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(test_support_clock, virtual_clock)

BOOST_AUTO_TEST_CASE(timers_fire_when_the_clock_is_moved_past_them)
{
    asio::io_context io;
    std::vector<int> fired;
    lease_timer late(io, 3h), early(io, 1h), never(io, 100h);
    late.async_wait([&](error_code) { fired.push_back(3); });
    early.async_wait([&](error_code ec) {
        if (!ec)
            fired.push_back(1);
    });
    never.async_wait([&](error_code) { fired.push_back(100); });
    run_ready(io);
    BOOST_TEST(fired.empty());
    advance(io, 59min);
    BOOST_TEST(fired.empty());
    advance(io, 2min);
    BOOST_TEST(fired == std::vector{1}, boost::test_tools::per_element());
    advance(io, 9h);
    const std::vector both{1, 3};
    BOOST_TEST(fired == both, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_context_that_has_run_out_of_work_can_be_advanced)
{
    asio::io_context io;
    io.run();
    bool fired = false;
    lease_timer timer(io, 1h);
    timer.async_wait([&](error_code) { fired = true; });
    advance(io, 2h);
    BOOST_TEST(fired);
}

BOOST_AUTO_TEST_CASE(steps_let_a_timer_fire_as_often_as_it_is_armed)
{
    asio::io_context io;
    int fired = 0;
    lease_timer timer(io);
    std::function<void()> arm = [&] {
        timer.expires_after(1min);
        timer.async_wait([&](error_code) {
            ++fired;
            arm();
        });
    };
    arm();
    advance_by_steps(io, 10min + 5s, 5s);
    BOOST_TEST(fired == 10);
}

BOOST_AUTO_TEST_CASE(the_clock_is_real_again_afterwards)
{
    const auto before = lease_clock::now();
    {
        const virtual_clock clock;
        clock.skip(1000h);
        BOOST_TEST((lease_clock::now() - before >= 1000h));
    }
    BOOST_TEST((lease_clock::now() - before < 1h));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(test_support_run, virtual_clock)

BOOST_AUTO_TEST_CASE(result_or_exception_is_returned)
{
    asio::io_context io;
    BOOST_TEST(run_coro(io, []() -> asio::awaitable<int> { co_return 42; }()) == 42);
    BOOST_CHECK_THROW(run_coro(io,
                          []() -> asio::awaitable<void> {
                              throw std::logic_error("thrown");
                              co_return;
                          }()),
        std::logic_error);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_nobody_can_wake_is_reported_with_the_callers_line)
{
    asio::io_context io;
    const auto wait_for_an_hour = []() -> asio::awaitable<void> {
        // The virtual clock does not move, so the timer never fires. It keeps the context running.
        lease_timer timer(co_await asio::this_coro::executor, 1h);
        co_await timer.async_wait(asio::use_awaitable);
    };
    const int line = __LINE__ + 2;
    try {
        run_coro(io, wait_for_an_hour(), std::source_location::current(), {.time = 10ms});
        BOOST_ERROR("returned");
    } catch (const stuck& failure) {
        const std::string what = failure.what();
        BOOST_TEST(what.find("support.cpp:" + std::to_string(line)) != what.npos, what);
    }
    BOOST_CHECK_THROW(run_until(io, [] { return false; }, std::source_location::current(), {.handlers = 0}), stuck);
    asio::io_context idle;
    BOOST_CHECK_THROW(run_until(idle, [] { return false; }), stuck);
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct scripted_fixture : virtual_clock
{
    scripted_fixture() : env(io, scripted) {}
    ~scripted_fixture() { BOOST_TEST(scripted->unused() == 0U); }

    asio::io_context io;
    std::shared_ptr<adapter> memory = memory::make_adapter(io.get_executor());
    std::shared_ptr<scripted_adapter> scripted = std::make_shared<scripted_adapter>(memory);
    driver env;
    driver direct{io, memory};
    plain_claim_ptr claim = driver::exclusive("k");
};

errc code_of(const failure_ptr& error)
{
    BOOST_REQUIRE(error);
    return error->code;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(test_support_scripted, scripted_fixture)

BOOST_AUTO_TEST_CASE(without_a_script_all_passes_and_nothing_ends_inline)
{
    BOOST_TEST(!scripted->traits().capabilities.immediate);
    bool ended = false;
    claim->set_operation_start(lease_clock::now());
    scripted->start_create(claim, [&](create_outcome) { ended = true; });
    BOOST_TEST(!ended);
    BOOST_TEST(memory->traits().capabilities.immediate);
    run_ready(io);
    BOOST_TEST(ended);
    const auto next = driver::exclusive("k");
    env.check_refused(next);
    env.extend(claim, 5s);
    env.check_held(claim);
    BOOST_TEST(env.hand_over(claim, next).created.status == create_status::granted);
    env.grant(next);
    BOOST_TEST(env.inspect("k").size() == 1U);
    BOOST_TEST(env.list().size() == 1U);
    BOOST_TEST(env.purge().empty());
    BOOST_TEST(env.break_key("k").size() == 1U);
    BOOST_TEST((env.release(next).status == release_status::not_held));
    BOOST_TEST((env.abandon(next).status == release_status::not_held));
    run_coro(io, scripted->close(1s));

    std::string made;
    for (const auto& each : scripted->calls())
        made += std::string(to_string(each.what)) + " ";
    BOOST_TEST(made == "create create extend is_valid hand_over create inspect list purge break_key release abandon "
                       "close ");
    const auto calls = scripted->calls();
    BOOST_TEST(calls[1].key == "k");
    BOOST_TEST((calls[1].token == next->token()));
    BOOST_TEST((calls[2].ttl == 5s));
    BOOST_TEST(scripted->count(operation::create) == 3U);
    scripted->forget_calls();
    BOOST_TEST(scripted->calls().empty());
}

BOOST_AUTO_TEST_CASE(immediate_timing_passes_inline)
{
    const auto inline_adapter = std::make_shared<scripted_adapter>(memory, timing::immediate);
    BOOST_TEST(inline_adapter->traits().capabilities.immediate);
    bool ended = false;
    inline_adapter->start_create(claim, [&](create_outcome) { ended = true; });
    BOOST_TEST(ended);
    direct.release_held(claim);
}

BOOST_AUTO_TEST_CASE(a_lost_request_is_unknown_and_not_carried_out)
{
    scripted->next(operation::create, step::lose_request());
    const auto outcome = env.create(claim);
    BOOST_TEST(outcome.status == create_status::failed);
    BOOST_TEST(code_of(outcome.error) == errc::outcome_unknown);
    BOOST_TEST(direct.list().empty());
}

BOOST_AUTO_TEST_CASE(a_lost_reply_is_unknown_and_carried_out)
{
    scripted->next(operation::create, step::lose_reply());
    BOOST_TEST(code_of(env.create(claim).error) == errc::outcome_unknown);
    direct.check_held(claim);
    scripted->next(operation::extend, step::lose_reply());
    const auto extended = env.extend(claim, 5s);
    BOOST_TEST(extended.status == extend_status::failed);
    BOOST_TEST(code_of(extended.error) == errc::outcome_unknown);
    scripted->next(operation::is_valid, step::lose_reply());
    BOOST_TEST(code_of(env.valid(claim).error) == errc::outcome_unknown);
    scripted->next(operation::list, step::lose_reply());
    BOOST_CHECK_THROW(env.list(), std::runtime_error);
    scripted->next(operation::hand_over, step::lose_reply());
    const auto next = driver::exclusive("k");
    const auto handed = env.hand_over(claim, next);
    BOOST_TEST(handed.released.status == release_status::failed);
    BOOST_TEST(handed.created.status == create_status::failed);
    direct.check_held(next);
    scripted->next(operation::release, step::lose_reply());
    BOOST_TEST(code_of(env.release(next).error) == errc::outcome_unknown);
    BOOST_TEST(direct.list().empty());
}

BOOST_AUTO_TEST_CASE(scripted_steps_are_applied_in_their_order)
{
    scripted->next(operation::create, step::fail(errc::unavailable, "down"));
    scripted->next(operation::create, step::busy(3s, "somebody"));
    BOOST_TEST(env.create(claim).error->detail == "down");
    const auto busy = env.check_refused(claim);
    BOOST_TEST((busy.retry_after == 3s));
    BOOST_TEST(busy.holder == "somebody");
    env.grant(claim);
    for (const auto what : {operation::release, operation::abandon, operation::extend, operation::is_valid})
        scripted->next(what, step::not_held());
    BOOST_TEST(env.release(claim).status == release_status::not_held);
    BOOST_TEST(env.abandon(claim).status == release_status::not_held);
    BOOST_TEST(env.extend(claim, 1s).status == extend_status::not_held);
    env.check_not_held(claim);
    direct.check_held(claim);
    const auto next = driver::exclusive("k");
    scripted->next(operation::hand_over, step::busy());
    const auto handed = env.hand_over(claim, next);
    BOOST_TEST(handed.released.status == release_status::released);
    BOOST_TEST(handed.created.status == create_status::busy);
    BOOST_TEST(direct.list().empty());
}

BOOST_AUTO_TEST_CASE(repeated_step_applies_to_all_until_reset)
{
    scripted->always(operation::create, step::busy());
    scripted->next(operation::create, step::fail(errc::access_denied));
    BOOST_TEST(code_of(env.create(claim).error) == errc::access_denied);
    env.check_refused(claim);
    env.check_refused(claim);
    scripted->reset();
    env.grant(claim);
    env.release_held(claim);
}

BOOST_AUTO_TEST_CASE(a_delay_takes_virtual_time_and_hooks_see_both_sides)
{
    std::vector<std::size_t> held;
    const auto look = [&] { held.push_back(stored_in(*memory).size()); };
    scripted->next(operation::create, step::pass().delay(1h).before(look).after(look));
    const auto creating = start(io, scripted->create(claim));
    run_ready(io);
    BOOST_TEST(held.empty());
    advance(io, 2h);
    BOOST_TEST(creating.done());
    const std::vector<std::size_t> expected{0, 1};
    BOOST_TEST(held == expected, boost::test_tools::per_element());
    direct.release_held(claim);
}

BOOST_AUTO_TEST_CASE(a_held_request_arrives_when_it_is_delivered)
{
    scripted->next(operation::create, step::hold());
    auto creating = start(io, scripted->create(claim));
    run_ready(io);
    BOOST_TEST(!creating.done());
    BOOST_TEST(scripted->held() == 1U);
    BOOST_TEST(direct.list().empty());
    BOOST_TEST(scripted->deliver());
    BOOST_TEST((creating.get(io).status == create_status::granted));
    BOOST_TEST(!scripted->deliver());

    scripted->next(operation::release, step::hold());
    auto releasing = start(io, scripted->release(claim, release_guarantee::released));
    run_ready(io);
    BOOST_TEST(scripted->discard());
    BOOST_TEST(code_of(releasing.get(io).error) == errc::outcome_unknown);
    BOOST_TEST(!scripted->discard());
    direct.release_held(claim);
}

BOOST_AUTO_TEST_CASE(abandon_waits_for_late_requests)
{
    scripted->next(operation::create, step::hold_unknown());
    BOOST_TEST(code_of(env.create(claim).error) == errc::outcome_unknown);
    // Another claim is not concerned.
    BOOST_TEST(env.abandon(driver::exclusive("k")).status == release_status::not_held);
    const auto refused = env.abandon(claim);
    BOOST_TEST(refused.status == release_status::failed);
    BOOST_TEST(code_of(refused.error) == errc::unavailable);
    BOOST_TEST(scripted->deliver());
    run_ready(io);
    direct.check_held(claim);
    BOOST_TEST(env.abandon(claim).status == release_status::released);

    const auto lost = driver::exclusive("k");
    scripted->next(operation::create, step::hold_unknown());
    env.create(lost);
    BOOST_TEST(env.abandon(lost).status == release_status::failed);
    BOOST_TEST(scripted->discard());
    BOOST_TEST(env.abandon(lost).status == release_status::not_held);

    // If an abandon is answered too early, a late request takes the lock, and no claim releases it.
    const auto abandoned_early = driver::exclusive("k");
    scripted->trust_abandon(true);
    scripted->next(operation::create, step::hold_unknown());
    env.create(abandoned_early);
    BOOST_TEST(env.abandon(abandoned_early).status == release_status::not_held);
    BOOST_TEST(scripted->deliver());
    run_ready(io);
    direct.check_held(abandoned_early);
    direct.release_held(abandoned_early);
}

BOOST_AUTO_TEST_CASE(held_wait_is_not_woken_until_cancelled)
{
    const auto next = driver::exclusive("k");
    env.grant(claim);
    env.check_refused(next);
    int woken_times = 0;
    const auto wait = [&] {
        scripted->start_wait(next, lease_clock::time_point::max(), [&](wait_outcome) { ++woken_times; });
        run_ready(io);
    };
    scripted->next(operation::wait, step::hold());
    wait();
    env.release_held(claim);
    BOOST_TEST(woken_times == 0);
    BOOST_TEST(scripted->held() == 1U);
    scripted->cancel_wait(*next);
    BOOST_TEST(scripted->held() == 0U);
    wait();
    BOOST_TEST(woken_times == 1);
    env.release_held(next);
}

BOOST_AUTO_TEST_CASE(a_wait_is_woken_by_a_post)
{
    const auto next = driver::exclusive("k");
    env.grant(claim);
    env.check_refused(next);
    bool is_woken = false;
    scripted->start_wait(next, lease_clock::time_point::max(), [&](wait_outcome) { is_woken = true; });
    direct.backend().start_release(claim, release_guarantee::released, [](release_outcome) {});
    BOOST_TEST(!is_woken);
    run_ready(io);
    BOOST_TEST(is_woken);
    env.release_held(next);
}

BOOST_AUTO_TEST_CASE(capabilities_can_be_set)
{
    scripted->set_capabilities({.fence = true});
    BOOST_TEST(scripted->traits().capabilities.fence);
    BOOST_TEST(!scripted->traits().capabilities.fifo);
    BOOST_TEST(scripted->traits().name == "memory");
}

BOOST_AUTO_TEST_CASE(held_or_delayed_request_is_destroyed_with_its_context)
{
    auto owned = driver::exclusive("k");
    const auto watch = driver::watch(owned);
    {
        asio::io_context brief;
        const auto doomed = std::make_shared<scripted_adapter>(memory::make_adapter(brief.get_executor()));
        doomed->next(operation::create, step::hold());
        doomed->next(operation::create, step::pass().delay(1h));
        // The completions own the adapter and the claim, as the core's do.
        doomed->start_create(owned, [doomed, owned](create_outcome) {});
        doomed->start_create(owned, [doomed, owned](create_outcome) {});
        run_ready(brief);
        owned.reset();
        BOOST_TEST(!watch.expired());
    }
    BOOST_TEST(watch.expired());
}

BOOST_AUTO_TEST_SUITE_END()
