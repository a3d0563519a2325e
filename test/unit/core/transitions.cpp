// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Makes each row of the table of transitions in docs/internals.md happen to a record.
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"

#include "core/state/lock_record.hpp"

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;
using detail::phase;

namespace {

/// Keeps the claims of all creates.
class claim_recorder final : public instrumented_adapter
{
public:
    using instrumented_adapter::instrumented_adapter;

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        claims.push_back(claim);
        instrumented_adapter::start_create(std::move(claim), std::move(done));
    }

    std::vector<claim_ptr> claims;
};

/// A locker that acquires one lock. One row happens to its record.
struct transition_fixture : virtual_fixture
{
    transition_fixture() : virtual_fixture(backend_kind::other_context)
    {
        recorder = std::make_shared<claim_recorder>(memory, context->get_executor());
        script = recorder;
        locker.emplace(script, locker_options{.retry = retry_policy::fixed(100ms)});
    }

    [[nodiscard]] phase current() const
    {
        return detail::lock_record::from_claim(recorder->claims.at(0)).current_phase();
    }
    [[nodiscard]] bool is_in_flight(detail::operation kind) const
    {
        return detail::lock_record::from_claim(recorder->claims.at(0)).in_flight == kind;
    }
    /// Starts an acquire that `cancellation` cancels. Its create does as `behavior` says.
    void begin_acquire(step behavior, acquire_options options = {})
    {
        script->next(operation::create, std::move(behavior));
        locker->async_acquire("k", std::move(options),
            asio::bind_cancellation_slot(
                cancellation.slot(), [this](error_code, lock result) { held = std::move(result); }));
        ready();
    }
    /// Stores the current phase as the one in which the event of the row finds the record.
    void note_phase_before() { from = current(); }
    /// Runs the handlers that are ready, and stores the phase that the event has led to.
    void note_phase_after()
    {
        ready();
        to = current();
    }
    [[nodiscard]] std::size_t count(operation kind) const { return script->count(kind); }

    std::shared_ptr<claim_recorder> recorder;
    asio::cancellation_signal cancellation;
    lock held;
    phase from{};
    phase to{};
};

using scenario = void (*)(transition_fixture&);

void grant(transition_fixture& env)
{
    env.begin_acquire(step::hold());
    env.note_phase_before();
    env.script->deliver();
    env.note_phase_after();
    BOOST_TEST(env.held.held());
    BOOST_TEST(env.locker->stats().held == 1U);
}

void answer_otherwise(transition_fixture& env)
{
    env.script->always(operation::create, step::fail(errc::unavailable));
    env.begin_acquire(step::hold());
    env.note_phase_before();
    env.script->discard();
    env.note_phase_after();
    env.advance_by_steps(1s, 50ms);
    BOOST_TEST_REQUIRE(env.recorder->claims.size() > 1U);
    BOOST_TEST(env.recorder->claims[1] == env.recorder->claims[0]);
    env.cancellation.emit(asio::cancellation_type::total);
}

void release_late_grant(transition_fixture& env)
{
    env.script->next(operation::release, step::hold());
    env.begin_acquire(step::hold(), {.ttl = 1s});
    virtual_clock::skip(1s);
    env.script->deliver();
    env.ready();
    BOOST_TEST(env.is_in_flight(detail::operation::release));
    env.note_phase_before();
    env.script->deliver();
    env.note_phase_after();
    env.advance_by_steps(1s, 50ms);
    BOOST_TEST(env.held.held());
}

void give_up_without_trace(transition_fixture& env)
{
    env.begin_acquire(step::fail(errc::unavailable));
    BOOST_TEST(env.is_in_flight(detail::operation::none));
    env.note_phase_before();
    env.cancellation.emit(asio::cancellation_type::total);
    env.note_phase_after();
    BOOST_TEST(env.count(operation::abandon) == 0U);
}

void give_up_in_flight(transition_fixture& env)
{
    env.begin_acquire(step::hold());
    env.note_phase_before();
    env.cancellation.emit(asio::cancellation_type::total);
    env.note_phase_after();
    BOOST_TEST(env.locker->stats().settling == 1U);
    env.script->deliver();
}

void complete_group(transition_fixture& env)
{
    disable_create_all(env);
    env.script->next(operation::create, step::pass());
    env.script->next(operation::create, step::hold());
    auto acquiring = env.start(env.locker->acquire_all({"a", "b"}));
    env.ready();
    BOOST_TEST(env.locker->stats().grants == 0U);
    env.note_phase_before();
    env.script->deliver();
    env.note_phase_after();
    const auto group = acquiring.get(env.io());
    BOOST_TEST(env.locker->stats().grants == 2U);
}

void answer_extension(transition_fixture& env)
{
    env.begin_acquire(step::pass(), {.ttl = 3s, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::hold());
    const auto extending = env.start(env.held.extend(4s));
    env.ready();
    env.advance(2s);
    BOOST_TEST(env.count(operation::extend) == 1U);
    env.note_phase_before();
    env.script->deliver();
    env.note_phase_after();
    env.advance(10ms);
    BOOST_TEST(env.count(operation::extend) == 2U);
}

void release(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.script->next(operation::release, step::hold());
    env.note_phase_before();
    env.held = {};
    env.note_phase_after();
    BOOST_TEST(env.is_in_flight(detail::operation::release));
    env.script->deliver();
}

void lose(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.script->next(operation::release, step::hold());
    env.note_phase_before();
    env.recorder->claims.at(0)->lost(lost_reason::broken);
    env.note_phase_after();
    BOOST_TEST(env.locker->stats().losses[static_cast<std::size_t>(lost_reason::broken)] == 1U);
    env.script->deliver();
}

void lose_in_incomplete_group(transition_fixture& env)
{
    disable_create_all(env);
    env.script->next(operation::create, step::pass());
    env.script->next(operation::create, step::hold());
    env.script->next(operation::release, step::hold());
    auto acquiring = env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::never()}));
    env.ready();
    env.note_phase_before();
    env.recorder->claims.at(0)->lost(lost_reason::broken);
    env.note_phase_after();
    // A lock of an incomplete group has not been reported to anybody.
    BOOST_TEST(env.locker->stats().grants == 0U);
    BOOST_TEST(env.locker->stats().losses[static_cast<std::size_t>(lost_reason::broken)] == 0U);
    while (env.script->deliver())
        env.ready();
    COLOCK_THROWS(create_error, errc::unavailable, acquiring.get(env.io()));
}

void detach(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.note_phase_before();
    static_cast<void>(env.run(env.held.detach()));
    env.note_phase_after();
    BOOST_TEST(env.stored().size() == 1U);
    BOOST_TEST(env.locker->stats().settling == 0U);
    env.advance(1min);
}

void release_after_earlier_answer(transition_fixture& env)
{
    env.script->next(operation::release, step::hold());
    env.begin_acquire(step::hold());
    env.cancellation.emit(asio::cancellation_type::total);
    env.ready();
    BOOST_TEST(env.count(operation::release) == 0U);
    env.note_phase_before();
    env.script->deliver();
    env.note_phase_after();
    BOOST_TEST(env.count(operation::release) == 1U);
    env.script->deliver();
}

void release_again(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.script->next(operation::release, step::fail(errc::unavailable));
    env.script->next(operation::release, step::hold());
    env.held = {};
    env.ready();
    BOOST_TEST(env.is_in_flight(detail::operation::none));
    env.note_phase_before();
    env.advance(50ms);
    env.note_phase_after();
    BOOST_TEST(env.is_in_flight(detail::operation::release));
    env.script->deliver();
}

void answer_create_without_trace(transition_fixture& env)
{
    env.begin_acquire(step::fail(errc::unavailable).delay(1s));
    env.cancellation.emit(asio::cancellation_type::total);
    env.ready();
    env.note_phase_before();
    env.advance(1s);
    env.note_phase_after();
    BOOST_TEST(env.count(operation::abandon) == 0U);
    BOOST_TEST(env.locker->stats().settled == 1U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
}

void answer_release(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.script->next(operation::release, step::hold());
    env.held = {};
    env.ready();
    env.note_phase_before();
    env.script->deliver();
    env.note_phase_after();
    BOOST_TEST(env.stored().empty());
}

void fail_release(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.script->next(operation::release, step::hold());
    env.held = {};
    env.ready();
    env.note_phase_before();
    env.script->discard();
    env.note_phase_after();
    BOOST_TEST(env.stored().size() == 1U);
    env.advance(50ms);
    BOOST_TEST(env.stored().empty());
}

void end_unproven(transition_fixture& env)
{
    env.begin_acquire(step::pass(), {.ttl = 10s});
    env.script->next(operation::release, step::fail(errc::outcome_unknown, {}, errc::lost).delay(1s));
    env.held = {};
    env.ready();
    env.note_phase_before();
    env.advance(1s);
    env.note_phase_after();
    BOOST_TEST(env.locker->stats().unproven == 1U);
    env.advance(10s);
}

void give_up_at_shutdown(transition_fixture& env)
{
    env.begin_acquire(step::pass());
    env.script->next(operation::release, step::hold());
    env.held = {};
    env.ready();
    env.note_phase_before();
    auto closing = env.start(env.locker->shutdown(100ms));
    env.advance(100ms);
    env.note_phase_after();
    BOOST_TEST(closing.get(env.io()).unsettled.size() == 1U);
    BOOST_TEST(env.locker->stats().unproven == 1U);
    env.script->deliver();
}

const std::multimap<std::string, scenario, std::less<>> scenarios{
    {"granted in time, and the locker is open", grant},
    {"any other answer", answer_otherwise},
    {"the release of a late grant is answered", release_late_grant},
    {"given up; nothing is in flight, and no trace is left", give_up_without_trace},
    {"given up, otherwise", give_up_in_flight},
    {"the other locks of its group are held, too", complete_group},
    {"an extension, query or export is answered", answer_extension},
    {"released", release},
    {"lost; in an incomplete group, also given up", lose},
    {"lost; in an incomplete group, also given up", lose_in_incomplete_group},
    {"detached", detach},
    {"an earlier operation is answered, or a retry is due", release_after_earlier_answer},
    {"an earlier operation is answered, or a retry is due", release_again},
    {"its create is answered, and left no trace", answer_create_without_trace},
    {"the release is answered", answer_release},
    {"the release fails", fail_release},
    {"nothing can prove the release any more, or a shutdown gives it up", end_unproven},
    {"nothing can prove the release any more, or a shutdown gives it up", give_up_at_shutdown},
};

struct row
{
    std::string from;
    std::string event;
    std::string to;
};

/// Reads the table of the section "Transitions".
std::vector<row> documented_rows()
{
    std::ifstream file(COLOCK_INTERNALS_FILE);
    std::vector<row> rows;
    bool is_in_section = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#'))
            is_in_section = line == "### Transitions";
        if (!is_in_section || !line.starts_with("| `"))
            continue;
        std::vector<std::string> cells;
        boost::split(cells, line, boost::is_any_of("|"));
        for (auto& each : cells)
            boost::trim_if(each, boost::is_any_of(" `"));
        rows.push_back({cells.at(1), cells.at(2), cells.at(3)});
    }
    return rows;
}

std::string_view name_of(phase value)
{
    switch (value) {
    case phase::acquiring:
        return "acquiring";
    case phase::held:
        return "held";
    case phase::ending:
        return "ending";
    case phase::ended:
        return "ended";
    }
    return {};
}

} // namespace

BOOST_AUTO_TEST_SUITE(transitions)

BOOST_AUTO_TEST_CASE(each_row_of_the_table_happens)
{
    std::set<std::string> events;
    for (const auto& [from, event, to] : documented_rows()) {
        BOOST_TEST(events.insert(event).second, "two rows have the same event: " << event);
        BOOST_TEST(scenarios.contains(event), "no scenario for: " << event);
        const auto [first, last] = scenarios.equal_range(event);
        for (const auto& [name, run] : std::ranges::subrange(first, last)) {
            BOOST_TEST_CONTEXT(from << ": " << name << ", scenario " << events.size())
            {
                transition_fixture env;
                run(env);
                BOOST_TEST(name_of(env.from) == from);
                BOOST_TEST(name_of(env.to) == to);
                env.held = {};
                env.script->reset();
                env.wind_down_and_check();
            }
        }
    }
    for (const auto& [event, run] : scenarios)
        BOOST_TEST(events.contains(event), "no row for: " << event);
}

BOOST_AUTO_TEST_SUITE_END()
