// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/listening_plan.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock;
using namespace std::chrono_literals;
using remote::listening_plan;

BOOST_AUTO_TEST_SUITE(remote_listening_plan)

namespace {

using event = listening_plan::event;
using kind = listening_plan::action::kind;
using phase = remote::connection_plan::phase;

struct steps
{
    kind operator()(event what)
    {
        const auto next = plan.next(what, seen);
        delay = next.delay;
        return next.what;
    }
    void listen()
    {
        static_cast<void>((*this)(event::wanted));
        static_cast<void>((*this)(event::greeted_here));
    }

    listening_plan plan;
    listening_plan::view seen{.wanted = true, .requests = phase::open};
    lease_clock::duration delay{};
};

} // namespace

BOOST_AUTO_TEST_CASE(it_is_made_once_somebody_waits_and_requests_can_be_sent)
{
    steps step;
    step.seen.wanted = false;
    BOOST_TEST((step(event::wanted) == kind::none));
    step.seen = {.wanted = true, .requests = phase::idle};
    BOOST_TEST((step(event::wanted) == kind::connect_requests));
    for (const auto other : {phase::connecting, phase::ending, phase::waiting}) {
        step.seen.requests = other;
        BOOST_TEST((step(event::wanted) == kind::none));
    }
    step.seen.requests = phase::open;
    BOOST_TEST((step(event::wanted) == kind::connect));
    BOOST_TEST((step(event::wanted) == kind::none));
    BOOST_TEST(!step.plan.ready());
    BOOST_TEST((step(event::greeted_here) == kind::listen));
    BOOST_TEST(step.plan.ready());
    // Each who begins to wait is asked for.
    BOOST_TEST((step(event::wanted) == kind::listen));
}

BOOST_AUTO_TEST_CASE(it_is_made_again_for_those_who_wait_later_each_time)
{
    steps step;
    step.listen();
    for (const auto middle : {100ms, 200ms, 400ms, 800ms, 1600ms, 1600ms}) {
        BOOST_TEST((step(event::ended) == kind::wait));
        BOOST_TEST((step.delay >= middle / 2 && step.delay <= middle * 3 / 2));
        BOOST_TEST((step(event::wanted) == kind::none));
        BOOST_TEST((step(event::due) == kind::connect));
        BOOST_TEST((step(event::greeted_here) == kind::listen));
    }
    // That it stands is not enough to begin anew.
    BOOST_TEST((step(event::confirmed) == kind::listen));
    BOOST_TEST((step(event::ended) == kind::wait));
    BOOST_TEST((step.delay <= 150ms));
    step.seen.requests = phase::waiting;
    BOOST_TEST((step(event::due) == kind::none));
    step.seen.requests = phase::open;
    BOOST_TEST((step(event::wanted) == kind::connect));
}

BOOST_AUTO_TEST_CASE(it_ends_when_nobody_waits_any_more)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::turn) == kind::none));
    step.seen.wanted = false;
    BOOST_TEST((step(event::turn) == kind::close));
    BOOST_TEST((step(event::ended) == kind::none));
    BOOST_TEST((step(event::turn) == kind::none));
    BOOST_TEST((step(event::due) == kind::none));
}

BOOST_AUTO_TEST_CASE(who_begins_to_wait_while_its_retry_is_called_off_is_not_forgotten)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::ended) == kind::wait));
    step.seen.wanted = false;
    BOOST_TEST((step(event::turn) == kind::stop_waiting));
    step.seen.wanted = true;
    BOOST_TEST((step(event::wanted) == kind::connect));
}

BOOST_AUTO_TEST_CASE(only_a_missing_right_makes_waiters_poll)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::refused) == kind::close));
    BOOST_TEST(!step.plan.polls());
    // No answer to what was asked before counts, and nothing more is asked for.
    BOOST_TEST((step(event::confirmed) == kind::none));
    BOOST_TEST((step(event::denied) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::none));
    BOOST_TEST((step(event::ended) == kind::wait));
    BOOST_TEST((step(event::due) == kind::connect));
    BOOST_TEST((step(event::greeted_here) == kind::listen));
    BOOST_TEST((step(event::denied) == kind::close));
    BOOST_TEST(step.plan.polls());
    BOOST_TEST((step(event::ended) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::none));
    BOOST_TEST((step(event::due) == kind::none));
}

BOOST_AUTO_TEST_CASE(a_right_that_was_missing_is_asked_for_again_at_each_reconnect)
{
    for (const auto where : {event::requests_here, event::requests_elsewhere}) {
        steps step;
        step.listen();
        static_cast<void>(step(event::denied));
        static_cast<void>(step(event::ended));
        BOOST_TEST((step(where) == kind::ask_anew));
        BOOST_TEST(!step.plan.polls());
        BOOST_TEST((step(event::wanted) == kind::connect));
    }
}

BOOST_AUTO_TEST_CASE(it_follows_the_requests_to_another_server)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::requests_here) == kind::none));
    BOOST_TEST((step(event::requests_elsewhere) == kind::close));
    BOOST_TEST((step(event::ended) == kind::wait));
    // Nothing to close.
    BOOST_TEST((step(event::requests_elsewhere) == kind::none));
}

BOOST_AUTO_TEST_CASE(servers_that_answer_by_turns_do_not_keep_it_connecting)
{
    steps step;
    const auto connect = [&] {
        static_cast<void>(step(event::wanted));
        const auto greeted = step(event::greeted_elsewhere);
        if (greeted == kind::close) {
            static_cast<void>(step(event::ended));
            static_cast<void>(step(event::due));
        }
        return greeted;
    };
    for (int attempt = 0; attempt < 4; ++attempt)
        BOOST_TEST((connect() == kind::close));
    BOOST_TEST((connect() == kind::listen_elsewhere));
    BOOST_TEST(step.plan.ready());
    // A new connection for requests may have moved to where they come from.
    BOOST_TEST((step(event::requests_elsewhere) == kind::close));
    static_cast<void>(step(event::ended));
    static_cast<void>(step(event::due));
    BOOST_TEST((connect() == kind::close));
}

BOOST_AUTO_TEST_CASE(a_forked_child_makes_its_own)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::forked) == kind::none));
    BOOST_TEST((step(event::refused) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
}

BOOST_AUTO_TEST_SUITE_END()
