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

lock_group make_group(virtual_fixture& on, std::string id, std::vector<std::string> keys, acquire_options options = {})
{
    auto group = on.locker->group(std::move(id));
    for (auto& key : keys)
        on.run(group.acquire(std::move(key), options));
    return group;
}

} // namespace

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(several_locks_are_released_and_extended_in_one_round_trip_newest_first)
{
    virtual_fixture on(backend_kind::scripted);
    auto group = make_group(on, {}, {"a", "b", "c"});
    on.script->always(operation::release, step::pass().delay(1s));
    on.script->always(operation::extend, step::pass().delay(1s));
    auto extending = on.start(group.extend(50s));
    on.ready();
    expect(keys_of(*on.script, {operation::extend}), {"c", "b", "a"});
    on.advance(1s);
    BOOST_TEST_REQUIRE(extending.done());
    for (const auto& report : extending.get(on.io())) {
        BOOST_TEST(!report.status);
        BOOST_TEST(report.before.key == report.key);
        BOOST_TEST(report.before.group == group.id());
        BOOST_TEST((report.before.remaining && *report.before.remaining <= 30s));
    }
    auto releasing = on.start(group.release());
    on.ready();
    expect(keys_of(*on.script, {operation::release}), {"c", "b", "a"});
    on.advance(1s);
    BOOST_TEST_REQUIRE(releasing.done());
    const auto reports = releasing.get(on.io());
    BOOST_TEST_REQUIRE(reports.size() == 3U);
    BOOST_TEST(reports[0].key == "c");
    BOOST_TEST(reports[2].key == "a");
    for (const auto& report : reports)
        BOOST_TEST(!report.status);
    BOOST_TEST(on.script->count(operation::group) == 0U);
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(each_of_several_locks_is_reported_separately)
{
    virtual_fixture on(backend_kind::scripted);
    auto group = make_group(on, {}, {"a", "b", "c"});
    on.script->next(operation::extend, step::pass());
    on.script->next(operation::extend, step::fail(errc::unavailable));
    on.script->next(operation::extend, step::not_held());
    const auto extended = on.run(group.extend(50s));
    BOOST_TEST(!extended[0].status);
    BOOST_TEST((extended[1].status == errc::unavailable));
    BOOST_TEST((extended[2].status == errc::not_held));
    on.script->next(operation::release, step::hold());
    on.script->next(operation::release, step::fail(errc::unavailable));
    auto releasing = on.start(group.release());
    on.advance(10s);
    BOOST_TEST_REQUIRE(releasing.done());
    const auto released = releasing.get(on.io());
    BOOST_TEST((released[0].status == errc::outcome_unknown));
    BOOST_TEST((released[1].status == errc::unavailable));
    BOOST_TEST((released[2].status == errc::not_held));
    BOOST_TEST(on.script->deliver());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(an_extension_waits_for_a_renewal_that_is_under_way)
{
    virtual_fixture on(backend_kind::scripted);
    auto group = make_group(on, {}, {"a", "b"}, {.ttl = 10s, .renewal = renewal::automatic});
    on.script->always(operation::extend, step::pass().delay(500ms));
    on.advance_by_steps(4s, 100ms);
    while (on.script->count(operation::extend) == 0)
        on.advance(100ms);
    auto extending = on.start(group.extend(50s));
    on.advance_by_steps(2s, 100ms);
    BOOST_TEST_REQUIRE(extending.done());
    for (const auto& report : extending.get(on.io()))
        BOOST_TEST(!report.status);
    for (const auto& each : group.locks())
        BOOST_TEST((each.ttl() == 50s));
    on.run(group.release());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(cancelled_release_of_several_locks_continues)
{
    for (const bool by_id : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        auto group = make_group(on, by_id ? "g" : "", {"a", "b", "c"});
        on.script->always(operation::release, step::pass().delay(1s));
        asio::cancellation_signal cancel;
        bool failed = false;
        asio::co_spawn(on.io(), group.release(),
            asio::bind_cancellation_slot(cancel.slot(),
                [&](const std::exception_ptr& why, const std::vector<lock_report>&) { failed = why != nullptr; }));
        on.ready();
        cancel.emit(asio::cancellation_type::terminal);
        on.ready();
        BOOST_TEST(failed);
        BOOST_TEST(group.empty());
        BOOST_TEST(on.stored().size() == 3U);
        on.wind_down();
        BOOST_TEST(on.script->count(operation::release) == 3U);
        BOOST_TEST(on.script->count(operation::group) == 0U);
        on.check_clean();
    }
    // A release that is never started.
    virtual_fixture on(backend_kind::scripted);
    auto group = make_group(on, {}, {"a", "b"});
    {
        const auto dropped = group.release();
    }
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(unsupported_group_id_is_refused_before_a_request_is_sent)
{
    virtual_fixture on(backend_kind::scripted);
    auto able = on.script->capabilities();
    able.extends_groups = false;
    on.script->set_capabilities(able);
    on.locker.emplace(on.script);
    auto group = make_group(on, "g", {"a"});
    COLOCK_THROWS(validation_error, errc::unsupported, on.run(group.extend(50s)));
    BOOST_TEST(on.script->count(operation::extend) == 0U);
    BOOST_TEST(on.script->count(operation::group) == 0U);
    BOOST_TEST(on.run(group.release()).size() == 1U);
    auto own = make_group(on, {}, {"a"});
    BOOST_TEST(!on.run(own.extend(50s)).at(0).status);
    on.run(own.release());
    able.groups = false;
    on.script->set_capabilities(able);
    on.locker.emplace(on.script);
    COLOCK_THROWS(validation_error, errc::unsupported, on.locker->group("g"));
    COLOCK_THROWS(validation_error, errc::invalid_options, on.locker->group(std::string(257, 'g')));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(unanswered_group_operation_is_reported)
{
    for (const auto code : {errc::unavailable, errc::outcome_unknown, errc::access_denied}) {
        virtual_fixture on(backend_kind::scripted);
        auto group = make_group(on, "g", {"a", "b"});
        on.script->next(operation::group, step::fail(code));
        COLOCK_THROWS(extend_error, code, on.run(group.extend(50s)));
        BOOST_TEST(on.script->count(operation::extend) == 0U);
        BOOST_TEST((group.locks()[0].ttl() == 30s));
        on.script->next(operation::group, step::fail(code));
        COLOCK_THROWS(release_error, code, on.run(group.release()));
        BOOST_TEST(group.empty());
        on.check_clean();
    }
    virtual_fixture on(backend_kind::scripted);
    auto group = make_group(on, "g", {"a"});
    on.script->next(operation::group, step::hold());
    auto extending = on.start(group.extend(50s));
    on.advance(10s);
    BOOST_TEST_REQUIRE(extending.done());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, extending.get(on.io()));
    BOOST_TEST(on.script->discard());
    on.run(group.release());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(lock_granted_before_the_group_release_was_executed_is_lost)
{
    virtual_fixture on(backend_kind::scripted);
    auto group = on.locker->group("g"), elsewhere = on.locker->group("g");
    on.run(elsewhere.acquire("a"));
    on.script->next(operation::group, step::pass().delay(1s));
    auto releasing = on.start(group.release());
    on.ready();
    auto growing = on.start(elsewhere.acquire("b"));
    on.ready();
    BOOST_TEST_REQUIRE(growing.done());
    growing.get(on.io());
    on.advance(1s);
    BOOST_TEST(releasing.get(on.io()).size() == 2U);
    on.wind_down();
    BOOST_TEST(!elsewhere.locks()[0].held());
    BOOST_TEST(!elsewhere.locks()[1].held());
    on.run(elsewhere.release());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(an_empty_handle_does_nothing)
{
    virtual_fixture on;
    lock_group none;
    BOOST_TEST(on.run(none.release()).empty());
    BOOST_TEST(on.run(none.extend(1s)).empty());
    auto group = make_group(on, "g", {"a"});
    const auto moved = std::move(group);
    BOOST_TEST(on.run(group.release()).empty());
    BOOST_TEST(moved.held());
}

BOOST_AUTO_TEST_SUITE_END()
