// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"
#include "support/instrumented_adapter.hpp"
#include "support/jump.hpp"
#include "support/notes.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>
#include <colock/testing/scripted_adapter.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct scripted_fixture
{
    virtual_clock clock;
    scripted_fixture() : env(io, scripted) {}
    ~scripted_fixture() { BOOST_TEST(scripted->unused_count() == 0U); }

    asio::io_context io;
    std::shared_ptr<adapter> memory = memory::make_adapter(io.get_executor());
    std::shared_ptr<instrumented_adapter> scripted = std::make_shared<instrumented_adapter>(memory);
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

BOOST_FIXTURE_TEST_SUITE(testing_scripted_adapter, scripted_fixture)

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
    const auto inline_adapter = std::make_shared<instrumented_adapter>(memory, timing::immediate);
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
    jump(io, 2h);
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
    BOOST_TEST(scripted->held_count() == 1U);
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

/// Otherwise the claim would be abandoned while its create is still on its way.
BOOST_AUTO_TEST_CASE(late_request_is_executed_when_it_is_delivered_in_spite_of_its_delay)
{
    scripted->next(operation::create, step::hold_unknown().delay(5s));
    static_cast<void>(env.create(claim));
    BOOST_TEST(scripted->deliver());
    BOOST_TEST((env.abandon(claim).status == release_status::released));
    clock.advance(io, 10s);
    BOOST_TEST(stored_in(*memory).empty());
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
    BOOST_TEST(scripted->held_count() == 1U);
    scripted->cancel_wait(*next);
    BOOST_TEST(scripted->held_count() == 0U);
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
        const auto doomed = std::make_shared<instrumented_adapter>(memory::make_adapter(brief.get_executor()));
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

namespace {

/// A process whose backend can fail, and another one.
struct locker_fixture
{
    virtual_clock clock;
    asio::io_context io;
    std::shared_ptr<adapter> store = memory::make_adapter(io.get_executor());
    std::shared_ptr<scripted_adapter> backend = std::make_shared<scripted_adapter>(store);
    std::shared_ptr<notes> events = std::make_shared<notes>();
    locker mine{backend, {.retry = retry_policy::never(), .observer = events}};
    locker theirs{store};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(testing_scripted_backend, locker_fixture)

BOOST_AUTO_TEST_CASE(disconnected_backend_is_unavailable_until_reconnect)
{
    BOOST_TEST(events->readies == 1);
    backend->disconnect();
    BOOST_TEST(events->suspensions == 1);
    BOOST_CHECK_EXCEPTION(static_cast<void>(clock.run(io, mine.acquire("k"))), create_error,
        [](const create_error& error) { return error.code() == errc::unavailable; });
    BOOST_TEST(clock.run(io, theirs.acquire("k")).held());
    backend->reconnect();
    BOOST_TEST(events->reconnections == 1);
    BOOST_TEST(clock.run(io, mine.acquire("k")).held());
}

BOOST_AUTO_TEST_CASE(repeated_disconnect_and_reconnect_are_reported_once)
{
    backend->reconnect();
    BOOST_TEST(events->reconnections == 0);
    backend->disconnect();
    backend->disconnect();
    BOOST_TEST(events->suspensions == 1);
    backend->reconnect();
    backend->reconnect();
    BOOST_TEST(events->reconnections == 1);
}

BOOST_AUTO_TEST_CASE(disconnect_puts_held_locks_at_risk)
{
    const lock held = clock.run(io, mine.acquire("k", {.renewal = renewal::automatic}));
    backend->disconnect();
    clock.advance(io, 1s);
    BOOST_TEST(events->risks > 0);
    BOOST_TEST(held.held());
    clock.advance(io, 30s);
    BOOST_TEST(!held.held());
}

BOOST_AUTO_TEST_CASE(waiting_acquire_ends_after_the_connection_is_restored)
{
    lock held = clock.run(io, theirs.acquire("k", {.ttl = 1h}));
    std::optional<lock> next;
    asio::co_spawn(io, mine.acquire("k", {.retry = within(30min)}),
        [&](std::exception_ptr, lock granted) { next = std::move(granted); });
    clock.advance(io, 1min);
    backend->disconnect();
    clock.advance(io, 1min);
    clock.run(io, held.release());
    clock.advance(io, 1min);
    BOOST_TEST(!next.has_value());
    backend->reconnect();
    clock.run_until(io, [&] { return next.has_value(); });
    BOOST_TEST(next->held());
}

BOOST_AUTO_TEST_CASE(step_has_priority_over_a_lost_connection)
{
    backend->disconnect();
    backend->next(operation::create, step::pass());
    BOOST_TEST(clock.run(io, mine.acquire("k")).held());
    BOOST_TEST(backend->unused_count() == 0U);
}

BOOST_AUTO_TEST_CASE(steps_that_were_not_used_are_counted)
{
    backend->next(operation::extend, step::not_held());
    backend->next(operation::release, step::hold());
    BOOST_TEST(backend->unused_count() == 2U);
    backend->reset();
    BOOST_TEST(backend->unused_count() == 0U);
}

BOOST_AUTO_TEST_CASE(extend_that_is_answered_with_not_held_loses_the_lock)
{
    const lock held = clock.run(io, mine.acquire("k", {.renewal = renewal::automatic}));
    backend->next(operation::extend, step::not_held());
    BOOST_TEST((clock.run(io, held.lost()) == lost_reason::taken));
}

BOOST_AUTO_TEST_CASE(every_operation_has_a_name)
{
    BOOST_TEST(to_string(operation::create) == std::string("create"));
    BOOST_TEST(to_string(operation::close) == std::string("close"));
}

BOOST_AUTO_TEST_SUITE_END()
