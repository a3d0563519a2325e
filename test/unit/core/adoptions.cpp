// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Adoptions of detached locks: retries, late and refused answers, cancellation, and tickets that are refused.
#include "moved_locks.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <optional>
#include <string>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(adoptions)

namespace {

/// Number of requests that release a lock.
std::size_t release_count(const scripted_adapter& script)
{
    return script.count(operation::release) + script.count(operation::abandon) + script.count(operation::hand_over);
}

} // namespace

BOOST_AUTO_TEST_CASE(an_adoption_is_tried_again_until_it_is_answered)
{
    for (const auto& fault : {step::lose_request(), step::lose_reply(), step::fail(errc::unavailable)}) {
        virtual_fixture on(backend_kind::other_context);
        const auto ticket = detach_new_lock(on);
        on.script->next(operation::adopt, fault);
        on.script->next(operation::adopt, step::lose_request());
        auto adopting = on.start(on.locker->adopt(ticket));
        on.advance_by_steps(1s, 10ms);
        auto adopted = adopting.get(on.io());
        BOOST_TEST(adopted.held());
        BOOST_TEST(on.script->count(operation::adopt) == 3U);
        BOOST_TEST(on.locker->stats().retries == 2U);
        // The adopted claim is in doubt.
        COLOCK_THROWS(error, errc::outcome_unknown, on.run(adopted.detach()));
        adopted = {};
        on.wind_down();
        BOOST_TEST(on.script->count(operation::abandon) == 1U);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(an_adoption_that_is_not_answered_ends_with_the_operation_timeout)
{
    const auto end = [](errc expected, const std::optional<step>& always) {
        virtual_fixture on(backend_kind::other_context, {.operation_timeout = 2s});
        const auto ticket = detach_new_lock(on);
        on.script->always(operation::adopt, always.value_or(step::hold()));
        auto adopting = on.start(on.locker->adopt(ticket));
        on.advance_by_steps(1s, 50ms);
        BOOST_TEST(!adopting.done());
        on.advance_by_steps(1100ms, 50ms);
        BOOST_TEST(adopting.done());
        COLOCK_THROWS(create_error, expected, adopting.get(on.io()));
        on.script->reset();
        while (on.script->deliver())
            on.ready();
        on.wind_down();
        BOOST_TEST(on.locker->stats().held == 0U);
        BOOST_TEST(on.locker->stats().settling == 0U);
        // The lock is not held, or the ticket can be adopted again.
        if (!on.stored().empty()) {
            auto adopted = on.run(on.locker->adopt(ticket));
            on.run(adopted.release(on_failure::raise));
        }
        on.check_clean();
    };
    end(errc::unavailable, step::fail(errc::unavailable));
    end(errc::outcome_unknown, step::lose_request());
    end(errc::outcome_unknown, step::lose_reply());
    end(errc::outcome_unknown, std::nullopt);
}

BOOST_AUTO_TEST_CASE(an_adoption_that_is_refused_is_not_tried_again)
{
    virtual_fixture on(backend_kind::other_context);
    const auto ticket = detach_new_lock(on);
    on.script->next(operation::adopt, step::fail(errc::access_denied));
    COLOCK_THROWS(create_error, errc::access_denied, on.run(on.locker->adopt(ticket)));
    on.script->next(operation::adopt, step::busy());
    COLOCK_THROWS(create_error, errc::not_held, on.run(on.locker->adopt(ticket)));
    BOOST_TEST(on.script->count(operation::adopt) == 2U);
    BOOST_TEST(release_count(*on.script) == 0U);
    break_stored_lock(on);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(late_adoption_is_repeated)
{
    virtual_fixture on(backend_kind::other_context);
    const auto ticket = detach_new_lock(on);
    on.script->next(operation::adopt, step::pass().after([&] { on.clock.skip(940ms); }));
    auto adopting = on.start(on.locker->adopt(ticket, {.ttl = 1s}));
    on.advance_by_steps(200ms, 10ms);
    auto adopted = adopting.get(on.io());
    BOOST_TEST(adopted.held());
    BOOST_TEST(on.script->count(operation::adopt) == 2U);
    on.run(adopted.release(on_failure::raise));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(an_adoption_that_is_given_up_leaves_nothing)
{
    for (const auto& fault : {step::hold(), step::hold_unknown(), step::pass().delay(3s), step::lose_reply()}) {
        virtual_fixture on(backend_kind::other_context);
        const auto ticket = detach_new_lock(on);
        on.script->always(operation::adopt, fault);
        error_code result;
        asio::cancellation_signal cancel;
        on.locker->async_adopt(
            ticket, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock&) { result = code; }));
        on.ready();
        cancel.emit(asio::cancellation_type::total);
        on.ready();
        BOOST_TEST((result == asio::error::operation_aborted), result.message());
        on.script->reset();
        while (on.script->deliver())
            on.ready();
        on.wind_down();
        // Locks that were granted to the adoption were released.
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(an_adoption_ends_with_its_locker)
{
    virtual_fixture on(backend_kind::other_context);
    const auto ticket = detach_new_lock(on);
    on.script->always(operation::adopt, step::fail(errc::unavailable));
    auto adopting = on.start(on.locker->adopt(ticket));
    on.ready();
    on.run(on.locker->shutdown());
    COLOCK_THROWS(create_error, errc::shutting_down, adopting.get(on.io()));
    COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->adopt(ticket)));
    break_stored_lock(on);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_ticket_of_another_backend_is_refused)
{
    virtual_fixture on(backend_kind::scripted);
    auto ticket = detach_new_lock(on);
    // "memory", in hexadecimal.
    const auto at = ticket.find("6d656d6f7279");
    BOOST_TEST_REQUIRE(at != ticket.npos);
    auto other = ticket;
    other.replace(at, 12, "6d656d6f727a");
    COLOCK_THROWS(validation_error, errc::invalid_options, on.run(on.locker->adopt(other)));
    // A forged ticket.
    for (const char* group : {".00.", ".6700."}) {
        auto forged = ticket;
        forged.replace(forged.find(".."), 2, group);
        COLOCK_THROWS(validation_error, errc::invalid_options, on.run(on.locker->adopt(forged)));
    }
    // A ticket of another store looks like a ticket of this store.
    virtual_fixture another;
    COLOCK_THROWS(create_error, errc::not_held, another.run(another.locker->adopt(ticket)));
    auto adopted = on.run(on.locker->adopt(ticket));
    on.run(adopted.release(on_failure::raise));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_options_of_an_adoption_are_checked)
{
    virtual_fixture on;
    const auto ticket = detach_new_lock(on);
    COLOCK_THROWS(validation_error, errc::invalid_ttl, on.run(on.locker->adopt(ticket, {.ttl = -1ms})));
    COLOCK_THROWS(validation_error, errc::invalid_options,
        on.run(on.locker->adopt(ticket, {.owner = std::string(100'000, 'o')})));
    auto adopted = on.run(on.locker->adopt(ticket));
    on.run(adopted.release(on_failure::raise));
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
