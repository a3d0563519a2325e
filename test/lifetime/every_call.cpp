// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "scenarios.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Runs the scenario to its end, and delivers held answers whenever nothing else is left to do.
void run_to_end(const scenario& tested, scenario_run& run)
{
    auto& script = *run.env.script;
    for (int rounds = 0; rounds < 200; ++rounds) {
        while (one_step(tested, run)) {
        }
        if (run.completions > 0 && script.held_count() == 0 && run.env.idle())
            return;
        if (rounds % 3 == 2 && script.deliver())
            continue;
        jump(run.env.io(), 1s);
    }
}

struct fault
{
    std::string name;
    step how;
    std::set<operation> of;
};

std::vector<fault> faults()
{
    const std::set<operation> all{operation::create, operation::release, operation::abandon, operation::extend,
        operation::is_valid, operation::hand_over, operation::inspect, operation::break_key, operation::list,
        operation::purge, operation::adopt, operation::create_all, operation::group, operation::export_ticket};
    return {
        {"request lost", step::lose_request(), all},
        {"reply lost", step::lose_reply(), all},
        {"unavailable", step::fail(errc::unavailable), all},
        {"access denied", step::fail(errc::access_denied), all},
        {"held back", step::hold(), all},
        {"unknown, and arrives late", step::hold_unknown(),
            {operation::create, operation::create_all, operation::release, operation::extend, operation::hand_over,
                operation::adopt}},
        {"slow", step::pass().delay(3s), all},
        {"slower than the ttl", step::pass().delay(40s), all},
        {"busy", step::busy(), {operation::create, operation::create_all, operation::hand_over, operation::adopt}},
        {"not held", step::not_held(), {operation::extend, operation::is_valid}},
        {"wait never ends", step::hold(), {operation::wait}},
    };
}

/// The operations that are called on the backend if nothing fails.
std::vector<call> calls_of(const scenario& tested, call_form how)
{
    scenario_run run(backend_kind::scripted);
    tested.prepare(run);
    run.env.script->forget_calls();
    begin(tested, how, run);
    while (one_step(tested, run)) {
    }
    run.others.clear();
    run.subject = {};
    run.group = {};
    run.env.ready();
    return run.env.script->calls();
}

void fail_at_every_call(const scenario& tested, call_form how)
{
    const auto calls = calls_of(tested, how);
    std::array<std::size_t, operation_count> earlier{};
    for (std::size_t index = 0; index < calls.size(); ++index) {
        const auto what = calls[index].what;
        const auto before = earlier[static_cast<std::size_t>(what)]++;
        for (const auto& each : faults()) {
            if (!each.of.contains(what))
                continue;
            BOOST_TEST_CONTEXT("call " << index << ", " << to_string(what) << ": " << each.name)
            {
                scenario_run run(backend_kind::scripted);
                tested.prepare(run);
                for (std::size_t n = 0; n < before; ++n)
                    run.env.script->next(what, step::pass());
                run.env.script->next(what, each.how);
                begin(tested, how, run);
                run_to_end(tested, run);
                BOOST_TEST(run.completions == 1);
                run.release_in_background();
                run_to_end(tested, run);
                BOOST_TEST(run.env.script->unused_count() == 0U);
                run.env.check_clean();
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(faults_at_every_call)

BOOST_AUTO_TEST_CASE(leave_nothing_behind)
{
    for_every_scenario<scenario_run>([](const scenario& tested, call_form how) { fail_at_every_call(tested, how); });
}

BOOST_AUTO_TEST_SUITE_END()
