// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Adoptions of detached locks: retries, late and refused answers, cancellation, and tickets that are refused.
#include "moved_locks.hpp"
#include "support/virtual_fixture.hpp"

#include <cstddef>
#include <optional>
#include <string>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(adoptions)

namespace {

/// Number of requests that release a lock.
std::size_t release_count(const instrumented_adapter& script)
{
    return script.count(operation::release) + script.count(operation::abandon) + script.count(operation::hand_over);
}

} // namespace

BOOST_AUTO_TEST_CASE(an_adoption_is_tried_again_until_it_is_answered)
{
    for (const auto& fault : {step::lose_request(), step::lose_reply(), step::fail(errc::unavailable)}) {
        virtual_fixture env(backend_kind::other_context);
        const auto ticket = detach_new_lock(env);
        env.script->next(operation::adopt, fault);
        env.script->next(operation::adopt, step::lose_request());
        auto adopting = env.start(env.locker->adopt(ticket));
        env.advance_by_steps(1s, 10ms);
        auto adopted = adopting.get(env.io());
        BOOST_TEST(adopted.held());
        BOOST_TEST(env.script->count(operation::adopt) == 3U);
        BOOST_TEST(env.locker->stats().retries == 2U);
        // The adopted claim is in doubt.
        COLOCK_THROWS(error, errc::outcome_unknown, env.run(adopted.detach()));
        adopted = {};
        env.wind_down();
        BOOST_TEST(env.script->count(operation::abandon) == 1U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(an_adoption_that_is_not_answered_ends_with_the_operation_timeout)
{
    const auto end = [](errc expected, const std::optional<step>& always) {
        virtual_fixture env(backend_kind::other_context, {.operation_timeout = 2s});
        const auto ticket = detach_new_lock(env);
        env.script->always(operation::adopt, always.value_or(step::hold()));
        auto adopting = env.start(env.locker->adopt(ticket));
        env.advance_by_steps(1s, 50ms);
        BOOST_TEST(!adopting.done());
        env.advance_by_steps(1100ms, 50ms);
        BOOST_TEST(adopting.done());
        COLOCK_THROWS(create_error, expected, adopting.get(env.io()));
        env.script->reset();
        while (env.script->deliver())
            env.ready();
        env.wind_down();
        BOOST_TEST(env.locker->stats().held == 0U);
        BOOST_TEST(env.locker->stats().settling == 0U);
        // The lock is not held, or the ticket can be adopted again.
        if (!env.stored().empty()) {
            auto adopted = env.run(env.locker->adopt(ticket));
            env.run(adopted.release(on_failure::raise));
        }
        env.check_clean();
    };
    end(errc::unavailable, step::fail(errc::unavailable));
    end(errc::outcome_unknown, step::lose_request());
    end(errc::outcome_unknown, step::lose_reply());
    end(errc::outcome_unknown, std::nullopt);
}

BOOST_AUTO_TEST_CASE(an_adoption_that_is_refused_is_not_tried_again)
{
    virtual_fixture env(backend_kind::other_context);
    const auto ticket = detach_new_lock(env);
    env.script->next(operation::adopt, step::fail(errc::access_denied));
    COLOCK_THROWS(create_error, errc::access_denied, env.run(env.locker->adopt(ticket)));
    env.script->next(operation::adopt, step::busy());
    COLOCK_THROWS(create_error, errc::not_held, env.run(env.locker->adopt(ticket)));
    BOOST_TEST(env.script->count(operation::adopt) == 2U);
    BOOST_TEST(release_count(*env.script) == 0U);
    break_stored_lock(env);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(late_adoption_is_repeated)
{
    virtual_fixture env(backend_kind::other_context);
    const auto ticket = detach_new_lock(env);
    env.script->next(operation::adopt, step::pass().after([&] { env.clock.skip(940ms); }));
    auto adopting = env.start(env.locker->adopt(ticket, {.ttl = 1s}));
    env.advance_by_steps(200ms, 10ms);
    auto adopted = adopting.get(env.io());
    BOOST_TEST(adopted.held());
    BOOST_TEST(env.script->count(operation::adopt) == 2U);
    env.run(adopted.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(an_adoption_ends_with_its_locker)
{
    virtual_fixture env(backend_kind::other_context);
    const auto ticket = detach_new_lock(env);
    env.script->always(operation::adopt, step::fail(errc::unavailable));
    auto adopting = env.start(env.locker->adopt(ticket));
    env.ready();
    env.run(env.locker->shutdown());
    COLOCK_THROWS(create_error, errc::shutting_down, adopting.get(env.io()));
    COLOCK_THROWS(create_error, errc::shutting_down, env.run(env.locker->adopt(ticket)));
    break_stored_lock(env);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_ticket_of_another_backend_is_refused)
{
    virtual_fixture env(backend_kind::scripted);
    auto ticket = detach_new_lock(env);
    // "memory", in hexadecimal.
    const auto at = ticket.find("6d656d6f7279");
    BOOST_TEST_REQUIRE(at != ticket.npos);
    auto other = ticket;
    other.replace(at, 12, "6d656d6f727a");
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(env.locker->adopt(other)));
    // A forged ticket.
    for (const char* group : {".00.", ".6700."}) {
        auto forged = ticket;
        forged.replace(forged.find(".."), 2, group);
        COLOCK_THROWS(validation_error, errc::invalid_options, env.run(env.locker->adopt(forged)));
    }
    // A ticket of another store looks like a ticket of this store.
    virtual_fixture another;
    COLOCK_THROWS(create_error, errc::not_held, another.run(another.locker->adopt(ticket)));
    auto adopted = env.run(env.locker->adopt(ticket));
    env.run(adopted.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(the_options_of_an_adoption_are_checked)
{
    virtual_fixture env;
    const auto ticket = detach_new_lock(env);
    COLOCK_THROWS(validation_error, errc::invalid_ttl, env.run(env.locker->adopt(ticket, {.ttl = -1ms})));
    COLOCK_THROWS(validation_error, errc::invalid_options,
        env.run(env.locker->adopt(ticket, {.owner = std::string(100'000, 'o')})));
    auto adopted = env.run(env.locker->adopt(ticket));
    env.run(adopted.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
