// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/timer_queue.hpp"
#include "support/jump.hpp"

#include <colock/clock.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(timer_queue)

namespace {

struct heap_owner
{
    explicit heap_owner(const adapter& backend) : timers(backend) {}
    void on_fired()
    {
        timers.mark_fired(lease_clock::now());
        while (timers.take_due(lease_clock::now()))
            ++due_count;
        timers.arm();
    }
    void on_unused() { timers.disarm_if_unused(); }

    detail::timer_queue timers;
    int due_count = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(timer_that_was_armed_again_before_its_first_handler_ran_is_disarmed)
{
    const virtual_clock clock;
    asio::io_context io;
    const auto backend = memory::make_adapter(io.get_executor());
    const auto owner = std::make_shared<heap_owner>(*backend);
    owner->timers.set_owner<&heap_owner::on_fired, &heap_owner::on_unused>(owner);
    detail::condition source;
    owner->timers.schedule(source, lease_clock::now() + 1s);
    // Both timers are due, and the handler of this one runs first.
    lease_timer first(io.get_executor(), lease_clock::time_point::min());
    first.async_wait([&](error_code) {
        owner->timers.schedule(source, lease_clock::time_point::max());
        owner->timers.disarm_if_unused();
        owner->timers.schedule(source, lease_clock::now() + 1h);
        owner->timers.schedule(source, lease_clock::time_point::max());
    });
    virtual_clock::skip(1s);
    while (io.poll() != 0) {
    }
    BOOST_TEST(owner->due_count == 0);
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_SUITE_END()
