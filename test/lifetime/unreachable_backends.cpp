// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The events of a backend that cannot be reached, and of callers that wait for it.
#include "backend_failures.hpp"
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <memory>
#include <string_view>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(unreachable_backends)

BOOST_AUTO_TEST_CASE(each_cause_is_reported_once_until_the_backend_returns)
{
    const auto listener = std::make_shared<event_recorder>();
    virtual_fixture env(backend_kind::scripted, {.observer = listener});
    // An observer of two lockers is notified once.
    const colock::locker second(env.backend(), {.observer = listener});
    const auto fail = [&](std::string_view address) { env.script->contact().set_down(no_connection(), address); };
    fail("a:1");
    fail("a:1");
    env.script->contact().set_down(make_failure(errc::unavailable, "it is loading"), "a:1");
    fail("a:1");
    fail("b:1");
    BOOST_TEST((listener->take() ==
                words{"refused by a:1: no connection", "no a:1: it is loading", "refused by b:1: no connection"}));
    // An observer that is attached later is notified, too.
    const auto late = std::make_shared<event_recorder>();
    const colock::locker third(env.backend(), {.observer = late});
    fail("b:1");
    BOOST_TEST((listener->take() == words{}));
    BOOST_TEST((late->take() == words{"refused by b:1: no connection"}));
    for (int i = 0; i < 2; ++i) {
        env.script->contact().set_up();
        env.script->contact().set_connecting("a:1");
        fail("a:1");
    }
    BOOST_TEST((listener->take() ==
                words{"ready", "refused by a:1: no connection", "reconnected", "refused by a:1: no connection"}));
}

BOOST_AUTO_TEST_CASE(wait_for_a_backend_is_not_reported_as_a_wait_for_a_lock)
{
    const auto listener = std::make_shared<event_recorder>();
    virtual_fixture env(backend_kind::scripted, {.observer = listener});
    env.script->always(operation::wait, step::hold());
    env.script->next(operation::create, step::hold());
    auto first = env.start(env.locker->acquire("k", {.retry = every_second}));
    env.advance(5s);
    env.script->always(operation::create, fails());
    env.script->discard();
    env.advance_by_steps(5s, 500ms);
    BOOST_TEST((listener->take() == words{}));
    // A later caller waits for the callers before it.
    auto second = env.start(env.locker->acquire("k"));
    env.advance(2s);
    BOOST_TEST((listener->take() == words{"waiting for k"}));
    // Now both wait for the lock. Each wait is reported once.
    env.script->always(operation::create, step::busy());
    env.advance_by_steps(5s, 500ms);
    BOOST_TEST((listener->take() == words{"waiting for k"}));
    env.script->reset();
    env.advance(2s);
    first.get(env.io()) = {};
    second.get(env.io()) = {};
    finish_cleanup(env);
}

BOOST_AUTO_TEST_SUITE_END()
