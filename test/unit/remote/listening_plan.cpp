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
    kind operator()(event input)
    {
        const auto next = plan.resume(input, view);
        delay = next.delay;
        return next.step;
    }
    void listen()
    {
        static_cast<void>((*this)(event::needed));
        static_cast<void>((*this)(event::connected_here));
    }

    listening_plan plan;
    listening_plan::view view{.needed = true, .requests = phase::open};
    lease_clock::duration delay{};
};

} // namespace

BOOST_AUTO_TEST_CASE(connection_is_made_when_a_caller_waits_and_requests_can_be_sent)
{
    steps step;
    step.view.needed = false;
    BOOST_TEST((step(event::needed) == kind::none));
    step.view = {.needed = true, .requests = phase::idle};
    BOOST_TEST((step(event::needed) == kind::connect_requests));
    for (const auto other : {phase::connecting, phase::draining, phase::waiting}) {
        step.view.requests = other;
        BOOST_TEST((step(event::needed) == kind::none));
    }
    step.view.requests = phase::open;
    BOOST_TEST((step(event::needed) == kind::connect));
    BOOST_TEST((step(event::needed) == kind::none));
    BOOST_TEST(!step.plan.ready());
    BOOST_TEST((step(event::connected_here) == kind::listen));
    BOOST_TEST(step.plan.ready());
    // Each new waiter leads to a subscription.
    BOOST_TEST((step(event::needed) == kind::listen));
}

BOOST_AUTO_TEST_CASE(reconnects_for_waiters_with_a_growing_delay)
{
    steps step;
    step.listen();
    for (const auto middle : {100ms, 200ms, 400ms, 800ms, 1600ms, 1600ms}) {
        BOOST_TEST((step(event::closed) == kind::wait));
        BOOST_TEST((step.delay >= middle / 2 && step.delay <= middle * 3 / 2));
        BOOST_TEST((step(event::needed) == kind::none));
        BOOST_TEST((step(event::due) == kind::connect));
        BOOST_TEST((step(event::connected_here) == kind::listen));
    }
    // The connection alone does not reset the back-off; only a confirmed subscription does.
    BOOST_TEST((step(event::confirmed) == kind::listen));
    BOOST_TEST((step(event::closed) == kind::wait));
    BOOST_TEST((step.delay <= 150ms));
    step.view.requests = phase::waiting;
    BOOST_TEST((step(event::due) == kind::none));
    step.view.requests = phase::open;
    BOOST_TEST((step(event::needed) == kind::connect));
}

BOOST_AUTO_TEST_CASE(connection_is_closed_without_waiters)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::timer) == kind::none));
    step.view.needed = false;
    BOOST_TEST((step(event::timer) == kind::close));
    BOOST_TEST((step(event::closed) == kind::none));
    BOOST_TEST((step(event::timer) == kind::none));
    BOOST_TEST((step(event::due) == kind::none));
}

BOOST_AUTO_TEST_CASE(new_waiter_after_a_cancelled_back_off_connects_at_once)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::closed) == kind::wait));
    step.view.needed = false;
    BOOST_TEST((step(event::timer) == kind::stop_waiting));
    step.view.needed = true;
    BOOST_TEST((step(event::needed) == kind::connect));
}

BOOST_AUTO_TEST_CASE(only_a_missing_permission_leads_to_polling)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::refused) == kind::close));
    BOOST_TEST(!step.plan.polls());
    // Later answers have no effect, and no further subscription is sent.
    BOOST_TEST((step(event::confirmed) == kind::none));
    BOOST_TEST((step(event::denied) == kind::none));
    BOOST_TEST((step(event::needed) == kind::none));
    BOOST_TEST((step(event::closed) == kind::wait));
    BOOST_TEST((step(event::due) == kind::connect));
    BOOST_TEST((step(event::connected_here) == kind::listen));
    BOOST_TEST((step(event::denied) == kind::close));
    BOOST_TEST(step.plan.polls());
    BOOST_TEST((step(event::closed) == kind::none));
    BOOST_TEST((step(event::needed) == kind::none));
    BOOST_TEST((step(event::due) == kind::none));
}

BOOST_AUTO_TEST_CASE(missing_permission_is_checked_again_at_each_reconnection)
{
    for (const auto input : {event::requests_here, event::requests_elsewhere}) {
        steps step;
        step.listen();
        static_cast<void>(step(event::denied));
        static_cast<void>(step(event::closed));
        BOOST_TEST((step(input) == kind::subscribe_again));
        BOOST_TEST(!step.plan.polls());
        BOOST_TEST((step(event::needed) == kind::connect));
    }
}

BOOST_AUTO_TEST_CASE(events_follow_the_requests_to_another_server)
{
    steps step;
    step.listen();
    BOOST_TEST((step(event::requests_here) == kind::none));
    BOOST_TEST((step(event::requests_elsewhere) == kind::close));
    BOOST_TEST((step(event::closed) == kind::wait));
    // There is no connection to close.
    BOOST_TEST((step(event::requests_elsewhere) == kind::none));
}

BOOST_AUTO_TEST_CASE(alternating_servers_cause_a_limited_number_of_reconnections)
{
    steps step;
    const auto connect = [&] {
        static_cast<void>(step(event::needed));
        const auto greeted = step(event::connected_elsewhere);
        if (greeted == kind::close) {
            static_cast<void>(step(event::closed));
            static_cast<void>(step(event::due));
        }
        return greeted;
    };
    for (int attempt = 0; attempt < 4; ++attempt)
        BOOST_TEST((connect() == kind::close));
    BOOST_TEST((connect() == kind::listen_elsewhere));
    BOOST_TEST(step.plan.ready());
    // The new connection for requests may lead to the server that the events come from.
    BOOST_TEST((step(event::requests_elsewhere) == kind::close));
    static_cast<void>(step(event::closed));
    static_cast<void>(step(event::due));
    BOOST_TEST((connect() == kind::close));
}

BOOST_AUTO_TEST_SUITE_END()
