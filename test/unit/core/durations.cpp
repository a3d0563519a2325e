// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

using std::chrono::milliseconds;

/// Extreme values of a duration: the minimum, negative, zero, one, values that overflow as nanoseconds, the maximum.
std::vector<milliseconds> extremes()
{
    return {milliseconds::min(), -1ms, 0ms, 1ms, milliseconds(std::numeric_limits<std::int64_t>::max() / 1'000'000),
        milliseconds(std::numeric_limits<std::int64_t>::max() / 1'000'000 + 1), milliseconds::max()};
}

/// A public duration, and a use of it that either works or is refused.
struct duration_row
{
    std::string what;
    std::function<void(virtual_fixture&, milliseconds)> use;
};

/// Acquires and releases a key with these options.
void acquire_with(virtual_fixture& env, acquire_options options)
{
    auto held = env.acquire("k", std::move(options));
    env.run(held.release());
}

/// Acquires and releases a key through a locker with these options.
void use_locker_with(virtual_fixture& env, locker_options options)
{
    colock::locker by(env.memory, std::move(options));
    auto held = env.run(by.acquire("k"));
    env.run(held.release());
    env.run(by.with_lock("k", [] {}));
}

std::vector<duration_row> public_durations()
{
    return {
        {"acquire_options::ttl", [](virtual_fixture& env, milliseconds span) { acquire_with(env, {.ttl = span}); }},
        {"acquire_options::max_hold",
            [](virtual_fixture& env, milliseconds span) { acquire_with(env, {.max_hold = span}); }},
        {"fixed",
            [](virtual_fixture& env, milliseconds span) { acquire_with(env, {.retry = retry_policy::fixed(span)}); }},
        {"linear", [](virtual_fixture& env,
                       milliseconds span) { acquire_with(env, {.retry = retry_policy::linear(span, span)}); }},
        {"exponential",
            [](virtual_fixture& env, milliseconds span) {
                acquire_with(env, {.retry = retry_policy::exponential(span, 2.0, span)});
            }},
        {"total_time", [](virtual_fixture& env,
                           milliseconds span) { acquire_with(env, {.retry = retry_policy().total_time(span)}); }},
        {"within", [](virtual_fixture& env, milliseconds span) { acquire_with(env, {.retry = within(span)}); }},
        {"custom",
            [](virtual_fixture& env, milliseconds span) {
                acquire_with(env, {.retry = retry_policy::custom([span](const retry_attempt&) { return span; })});
            }},
        {"extend",
            [](virtual_fixture& env, milliseconds span) {
                auto held = env.acquire("k");
                env.run(held.extend(span));
            }},
        {"lock_group::extend",
            [](virtual_fixture& env, milliseconds span) {
                auto held = env.run(env.locker->acquire_all({"k", "l"}));
                static_cast<void>(env.run(held.extend(span)));
            }},
        {"locker_options::ttl", [](virtual_fixture& env, milliseconds span) { use_locker_with(env, {.ttl = span}); }},
        {"operation_timeout",
            [](virtual_fixture& env, milliseconds span) { use_locker_with(env, {.operation_timeout = span}); }},
        {"minimum_validity",
            [](virtual_fixture& env, milliseconds span) { use_locker_with(env, {.minimum_validity = span}); }},
        {"stop_margin", [](virtual_fixture& env, milliseconds span) { use_locker_with(env, {.stop_margin = span}); }},
        {"locker_options::max_hold",
            [](virtual_fixture& env, milliseconds span) { use_locker_with(env, {.max_hold = span}); }},
        {"filter::remaining_below",
            [](virtual_fixture& env, milliseconds span) {
                static_cast<void>(env.run(env.locker->list({.remaining_below = span, .remaining_at_least = span})));
            }},
        {"memory::options::sweep_interval",
            [](virtual_fixture& env, milliseconds span) {
                colock::locker by(memory::make_adapter(env.io().get_executor(), {.sweep_interval = span}));
                env.run(by.with_lock("k", [] {}));
            }},
        {"shutdown",
            [](virtual_fixture& env, milliseconds span) {
                colock::locker by(env.memory);
                auto held = env.run(by.acquire("k"));
                BOOST_TEST(env.run(by.shutdown(span)).clean());
                BOOST_TEST(!held.held());
            }},
    };
}

/// Checks that each value is used or refused, without an overflow, which the sanitizer would detect, and without a lock
/// left behind.
void check(const duration_row& row, backend_kind kind)
{
    for (const auto span : extremes()) {
        BOOST_TEST_CONTEXT(row.what << " of " << span.count() << " ms, " << kind)
        {
            virtual_fixture env(kind);
            try {
                row.use(env, span);
            } catch (const validation_error& refused) {
                BOOST_TEST(!refused.detail().empty());
            }
            env.wind_down_and_check();
        }
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(durations)

BOOST_AUTO_TEST_CASE(each_is_used_or_refused_at_its_limits)
{
    for (const auto& row : public_durations()) {
        for (const auto kind : {backend_kind::memory, backend_kind::scripted})
            check(row, kind);
    }
}

BOOST_AUTO_TEST_CASE(shutdown_without_a_deadline_waits_for_releases)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::release, step::pass().delay(20s));
    auto held = env.acquire("k");
    auto report = env.start(env.locker->shutdown(milliseconds::max()));
    env.ready();
    BOOST_TEST(!report.done());
    env.advance(21s);
    BOOST_TEST(report.get(env.io()).clean());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_cast_saturates_in_both_directions)
{
    BOOST_TEST((saturating_cast(milliseconds::max()) == lease_clock::duration::max()));
    BOOST_TEST((saturating_cast(milliseconds::min()) == lease_clock::duration::min()));
    BOOST_TEST((saturating_cast(std::chrono::hours::max()) == lease_clock::duration::max()));
    BOOST_TEST((saturating_cast(std::chrono::duration<double>(1e300)) == lease_clock::duration::max()));
    BOOST_TEST((saturating_cast(std::chrono::duration<double>(-1e300)) == lease_clock::duration::min()));
    BOOST_TEST((saturating_cast(milliseconds(-1)) == lease_clock::duration(-1'000'000)));
    BOOST_TEST((saturating_cast(5s) == lease_clock::duration(5'000'000'000)));
}

BOOST_AUTO_TEST_CASE(margins_that_no_lease_can_keep_are_refused)
{
    virtual_fixture env;
    const auto with = [&](locker_options options) { return colock::locker(env.memory, std::move(options)); };
    COLOCK_THROWS(validation_error, errc::invalid_options, with({.ttl = 1s, .minimum_validity = 1s}));
    COLOCK_THROWS(validation_error, errc::invalid_options, with({.ttl = 1s, .stop_margin = 1s}));
    // A lease of 1 s is valid for 988 ms, because the possible drift of the clocks is subtracted.
    COLOCK_THROWS(validation_error, errc::invalid_options, with({.ttl = 1s, .minimum_validity = 988ms}));

    auto strict = with({.ttl = 1min, .minimum_validity = 987ms, .stop_margin = 987ms});
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(strict.acquire("k", {.ttl = 900ms})));
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(strict.with_lock("k", {.ttl = 900ms}, [] {})));
    BOOST_TEST(env.run(strict.acquire("k", {.ttl = 1s})).held());
    BOOST_TEST(env.run(strict.acquire("k", {.ttl = 0ms})).held());

    // Only a body is stopped.
    auto stops = with({.ttl = 1min, .stop_margin = 10s});
    BOOST_TEST(env.run(stops.acquire("k", {.ttl = 5s})).held());
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(stops.with_lock("k", {.ttl = 5s}, [] {})));
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
