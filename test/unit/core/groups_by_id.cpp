// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

lock_group make_group(virtual_fixture& env, std::string id, std::vector<std::string> keys, acquire_options options = {})
{
    auto group = env.locker->group(std::move(id));
    for (auto& key : keys)
        env.run(group.acquire(std::move(key), options));
    return group;
}

} // namespace

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(several_locks_are_released_and_extended_in_one_round_trip_newest_first)
{
    virtual_fixture env(backend_kind::scripted);
    auto group = make_group(env, {}, {"a", "b", "c"});
    env.script->always(operation::release, step::pass().delay(1s));
    env.script->always(operation::extend, step::pass().delay(1s));
    auto extending = env.start(group.extend(50s));
    env.ready();
    expect(keys_of(*env.script, {operation::extend}), {"c", "b", "a"});
    env.advance(1s);
    BOOST_TEST_REQUIRE(extending.done());
    for (const auto& report : extending.get(env.io())) {
        BOOST_TEST(!report.status);
        BOOST_TEST(report.before.key == report.key);
        BOOST_TEST(report.before.group == group.id());
        BOOST_TEST((report.before.remaining && *report.before.remaining <= 30s));
    }
    auto releasing = env.start(group.release());
    env.ready();
    expect(keys_of(*env.script, {operation::release}), {"c", "b", "a"});
    env.advance(1s);
    BOOST_TEST_REQUIRE(releasing.done());
    const auto reports = releasing.get(env.io());
    BOOST_TEST_REQUIRE(reports.size() == 3U);
    BOOST_TEST(reports[0].key == "c");
    BOOST_TEST(reports[2].key == "a");
    for (const auto& report : reports)
        BOOST_TEST(!report.status);
    BOOST_TEST(env.script->count(operation::group) == 0U);
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(each_of_several_locks_is_reported_separately)
{
    virtual_fixture env(backend_kind::scripted);
    auto group = make_group(env, {}, {"a", "b", "c"});
    env.script->next(operation::extend, step::pass());
    env.script->next(operation::extend, step::fail(errc::unavailable));
    env.script->next(operation::extend, step::not_held());
    const auto extended = env.run(group.extend(50s));
    BOOST_TEST(!extended[0].status);
    BOOST_TEST((extended[1].status == errc::unavailable));
    BOOST_TEST((extended[2].status == errc::not_held));
    env.script->next(operation::release, step::hold());
    env.script->next(operation::release, step::fail(errc::unavailable));
    auto releasing = env.start(group.release());
    env.advance(10s);
    BOOST_TEST_REQUIRE(releasing.done());
    const auto released = releasing.get(env.io());
    BOOST_TEST((released[0].status == errc::outcome_unknown));
    BOOST_TEST((released[1].status == errc::unavailable));
    BOOST_TEST((released[2].status == errc::not_held));
    BOOST_TEST(env.script->deliver());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(an_extension_waits_for_a_renewal_that_is_under_way)
{
    virtual_fixture env(backend_kind::scripted);
    auto group = make_group(env, {}, {"a", "b"}, {.ttl = 10s, .renewal = renewal::automatic});
    env.script->always(operation::extend, step::pass().delay(500ms));
    env.advance_by_steps(4s, 100ms);
    while (env.script->count(operation::extend) == 0)
        env.advance(100ms);
    auto extending = env.start(group.extend(50s));
    env.advance_by_steps(2s, 100ms);
    BOOST_TEST_REQUIRE(extending.done());
    for (const auto& report : extending.get(env.io()))
        BOOST_TEST(!report.status);
    for (const auto& each : group.locks())
        BOOST_TEST((each.ttl() == 50s));
    env.run(group.release());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(cancelled_release_of_several_locks_continues)
{
    for (const bool by_id : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        auto group = make_group(env, by_id ? "g" : "", {"a", "b", "c"});
        env.script->always(operation::release, step::pass().delay(1s));
        asio::cancellation_signal cancel;
        bool failed = false;
        asio::co_spawn(env.io(), group.release(),
            asio::bind_cancellation_slot(cancel.slot(),
                [&](const std::exception_ptr& why, const std::vector<lock_report>&) { failed = why != nullptr; }));
        env.ready();
        cancel.emit(asio::cancellation_type::terminal);
        env.ready();
        BOOST_TEST(failed);
        BOOST_TEST(group.empty());
        BOOST_TEST(env.stored().size() == 3U);
        env.wind_down();
        BOOST_TEST(env.script->count(operation::release) == 3U);
        BOOST_TEST(env.script->count(operation::group) == 0U);
        env.check_clean();
    }
    // A release that is never started.
    virtual_fixture env(backend_kind::scripted);
    auto group = make_group(env, {}, {"a", "b"});
    {
        const auto dropped = group.release();
    }
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(unsupported_group_id_is_refused_before_a_request_is_sent)
{
    virtual_fixture env(backend_kind::scripted);
    auto supported = env.script->traits().capabilities;
    supported.extends_groups = false;
    env.script->set_capabilities(supported);
    env.locker.emplace(env.script);
    auto group = make_group(env, "g", {"a"});
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(group.extend(50s)));
    BOOST_TEST(env.script->count(operation::extend) == 0U);
    BOOST_TEST(env.script->count(operation::group) == 0U);
    BOOST_TEST(env.run(group.release()).size() == 1U);
    auto own = make_group(env, {}, {"a"});
    BOOST_TEST(!env.run(own.extend(50s)).at(0).status);
    env.run(own.release());
    supported.groups = false;
    env.script->set_capabilities(supported);
    env.locker.emplace(env.script);
    COLOCK_THROWS(validation_error, errc::unsupported, env.locker->group("g"));
    COLOCK_THROWS(validation_error, errc::invalid_options, env.locker->group(std::string(257, 'g')));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(unanswered_group_operation_is_reported)
{
    for (const auto code : {errc::unavailable, errc::outcome_unknown, errc::access_denied}) {
        virtual_fixture env(backend_kind::scripted);
        auto group = make_group(env, "g", {"a", "b"});
        env.script->next(operation::group, step::fail(code));
        COLOCK_THROWS(extend_error, code, env.run(group.extend(50s)));
        BOOST_TEST(env.script->count(operation::extend) == 0U);
        BOOST_TEST((group.locks()[0].ttl() == 30s));
        env.script->next(operation::group, step::fail(code));
        COLOCK_THROWS(release_error, code, env.run(group.release()));
        BOOST_TEST(group.empty());
        env.check_clean();
    }
    virtual_fixture env(backend_kind::scripted);
    auto group = make_group(env, "g", {"a"});
    env.script->next(operation::group, step::hold());
    auto extending = env.start(group.extend(50s));
    env.advance(10s);
    BOOST_TEST_REQUIRE(extending.done());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, extending.get(env.io()));
    BOOST_TEST(env.script->discard());
    env.run(group.release());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(lock_granted_before_the_group_release_was_executed_is_lost)
{
    virtual_fixture env(backend_kind::scripted);
    auto group = env.locker->group("g"), elsewhere = env.locker->group("g");
    env.run(elsewhere.acquire("a"));
    env.script->next(operation::group, step::pass().delay(1s));
    auto releasing = env.start(group.release());
    env.ready();
    auto growing = env.start(elsewhere.acquire("b"));
    env.ready();
    BOOST_TEST_REQUIRE(growing.done());
    growing.get(env.io());
    env.advance(1s);
    BOOST_TEST(releasing.get(env.io()).size() == 2U);
    env.wind_down();
    BOOST_TEST(!elsewhere.locks()[0].held());
    BOOST_TEST(!elsewhere.locks()[1].held());
    env.run(elsewhere.release());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(an_empty_handle_does_nothing)
{
    virtual_fixture env;
    lock_group none;
    BOOST_TEST(env.run(none.release()).empty());
    BOOST_TEST(env.run(none.extend(1s)).empty());
    auto group = make_group(env, "g", {"a"});
    const auto moved = std::move(group);
    BOOST_TEST(env.run(group.release()).empty());
    BOOST_TEST(moved.held());
}

BOOST_AUTO_TEST_SUITE_END()
