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

/// Plays to the end, and lets what is held back arrive whenever nothing else is left to do.
void play_out(const scenario& scene, stage& on)
{
    auto& script = *on.on.script;
    for (int rounds = 0; rounds < 200; ++rounds) {
        while (one_step(scene, on)) {
        }
        if (on.completions > 0 && script.held() == 0 && on.on.idle())
            return;
        if (rounds % 3 == 2 && script.deliver())
            continue;
        on.on.clock.advance(on.on.io(), 1s);
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
        operation::purge, operation::adopt};
    return {
        {"request lost", step::lose_request(), all},
        {"reply lost", step::lose_reply(), all},
        {"unavailable", step::fail(errc::unavailable), all},
        {"access denied", step::fail(errc::access_denied), all},
        {"held back", step::hold(), all},
        {"unknown, and arrives late", step::hold_unknown(),
            {operation::create, operation::release, operation::extend, operation::hand_over, operation::adopt}},
        {"slow", step::pass().delay(3s), all},
        {"slower than the ttl", step::pass().delay(40s), all},
        {"busy", step::busy(), {operation::create, operation::hand_over, operation::adopt}},
        {"not held", step::not_held(), {operation::extend, operation::is_valid}},
        {"deaf", step::hold(), {operation::wait}},
    };
}

/// The operations that the backend is asked for when nothing goes wrong.
std::vector<call> calls_of(const scenario& scene, family how)
{
    stage on(behind::scripted);
    scene.prepare(on);
    on.on.script->forget_calls();
    begin(scene, how, on);
    while (one_step(scene, on)) {
    }
    on.others.clear();
    on.subject = {};
    on.group = {};
    on.on.ready();
    return on.on.script->calls();
}

void fail_at_every_call(const scenario& scene, family how)
{
    const auto calls = calls_of(scene, how);
    std::array<std::size_t, operation_count> earlier{};
    for (std::size_t index = 0; index < calls.size(); ++index) {
        const auto what = calls[index].what;
        const auto before = earlier[static_cast<std::size_t>(what)]++;
        for (const auto& each : faults()) {
            if (!each.of.contains(what))
                continue;
            BOOST_TEST_CONTEXT("call " << index << ", " << to_string(what) << ": " << each.name)
            {
                stage on(behind::scripted);
                scene.prepare(on);
                for (std::size_t n = 0; n < before; ++n)
                    on.on.script->next(what, step::pass());
                on.on.script->next(what, each.how);
                begin(scene, how, on);
                play_out(scene, on);
                BOOST_TEST(on.completions == 1);
                on.release_in_background();
                play_out(scene, on);
                BOOST_TEST(on.on.script->unused() == 0U);
                on.on.check_clean();
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(faults_at_every_call)

BOOST_AUTO_TEST_CASE(leave_nothing_behind)
{
    for_every_scenario([](const scenario& scene, family how) { fail_at_every_call(scene, how); });
}

BOOST_AUTO_TEST_SUITE_END()
