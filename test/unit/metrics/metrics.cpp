// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/metrics.hpp>

#include <boost/asio/error.hpp>

#include <chrono>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Returns the value of a sample, or an empty text if there is none.
std::string value_of(const std::string& text, std::string_view sample)
{
    const std::string start = '\n' + std::string(sample) + ' ';
    const auto found = text.find(start);
    if (found == std::string::npos)
        return {};
    BOOST_TEST((text.find(start, found + 1) == std::string::npos), sample << " occurs twice");
    const auto value = found + start.size();
    return text.substr(value, text.find('\n', value) - value);
}

std::string value_of(const metrics& from, std::string_view sample)
{
    return value_of(from.text(), sample);
}

/// Returns the values of the label `prefix`.
std::set<std::string> prefixes_in(const std::string& text)
{
    std::set<std::string> result;
    constexpr std::string_view label = "colock_waits_total{prefix=\"";
    for (auto at = text.find(label); at != std::string::npos; at = text.find(label, at)) {
        at += label.size();
        result.insert(text.substr(at, text.find("\"} ", at) - at));
    }
    return result;
}

void check_refused(metrics_options options)
{
    COLOCK_THROWS(validation_error, errc::invalid_options, metrics(std::move(options)));
}

} // namespace

BOOST_AUTO_TEST_SUITE(metric_counters)

BOOST_AUTO_TEST_CASE(acquires_are_counted_by_outcome)
{
    metrics counted;
    counted.granted("a:1", 1, 0ns);
    counted.granted("a:2", 2, 0ns);
    counted.not_granted("a:1", errc::retry_exhausted, 1s);
    counted.not_granted("a:1", boost::asio::error::operation_aborted, 1s);
    counted.not_granted("a:1", errc::shutting_down, 1s);
    counted.not_granted("a:1", errc::unavailable, 1s);
    counted.not_granted("a:1", errc::invalid_ttl, 0s);
    const auto text = counted.text();
    BOOST_TEST(value_of(text, R"(colock_acquires_total{prefix="a",outcome="granted"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_acquires_total{prefix="a",outcome="exhausted"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_acquires_total{prefix="a",outcome="cancelled"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_acquires_total{prefix="a",outcome="shut_down"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_acquires_total{prefix="a",outcome="failed"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_wait_seconds_count{prefix="a"})") == "2");
}

BOOST_AUTO_TEST_CASE(events_of_a_key_are_counted_under_its_prefix)
{
    metrics counted;
    counted.waiting("a:1");
    counted.renewed("a:1", 1s);
    counted.renewed("a:1", 1s);
    counted.at_risk("a:1", errc::unavailable);
    counted.released("a:1", 1s);
    counted.lost("a:1", lost_reason::expired, 1s);
    counted.lost("a:1", lost_reason::session, 1s);
    counted.settled("a:1", true);
    counted.settled("a:1", false);
    for (const std::uint64_t term : {1U, 2U, 3U})
        counted.elected("a:1", term);
    counted.resigned("a:1", 1);
    counted.deposed("a:1", 2, lost_reason::expired);
    counted.deposed("a:1", 3, lost_reason::broken);
    const auto text = counted.text();
    BOOST_TEST(value_of(text, R"(colock_elected_total{prefix="a"})") == "3");
    BOOST_TEST(value_of(text, R"(colock_resigned_total{prefix="a"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_deposed_total{prefix="a"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_waits_total{prefix="a"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_renewals_total{prefix="a"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_at_risk_total{prefix="a"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_releases_total{prefix="a"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_losses_total{prefix="a",reason="expired"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_losses_total{prefix="a",reason="session"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_losses_total{prefix="a",reason="broken"})") == "0");
    BOOST_TEST(value_of(text, R"(colock_cleanups_total{prefix="a",proven="true"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_cleanups_total{prefix="a",proven="false"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_hold_seconds_count{prefix="a"})") == "3");
    BOOST_TEST(value_of(text, R"(colock_hold_seconds_sum{prefix="a"})") == "3");
}

BOOST_AUTO_TEST_CASE(events_of_the_connection_are_counted_by_backend)
{
    metrics counted;
    counted.ready("redis");
    BOOST_TEST(value_of(counted, R"(colock_reconnects_total{backend="redis"})") == "0");
    counted.suspended("redis", errc::unavailable);
    counted.unreachable("redis", errc::unavailable, "here:1", "away");
    counted.unreachable("redis", errc::unavailable, "here:2", "away");
    counted.reconnected("redis");
    counted.warning("other\n\"name\"", "text");
    const auto text = counted.text();
    BOOST_TEST(value_of(text, R"(colock_suspensions_total{backend="redis"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_unreachable_total{backend="redis"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_reconnects_total{backend="redis"})") == "1");
    BOOST_TEST(value_of(text, R"(colock_warnings_total{backend="redis"})") == "0");
    BOOST_TEST(value_of(text, R"(colock_warnings_total{backend="other\n\"name\""})") == "1");
}

BOOST_AUTO_TEST_CASE(histogram_is_cumulative_and_its_bounds_are_inclusive)
{
    metrics counted({.wait_buckets = {5ms, 100ms, 2500ms}});
    for (const std::chrono::nanoseconds waited : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(5ms), 5ms + 1ns,
             std::chrono::nanoseconds(2s), std::chrono::nanoseconds(1h)})
        counted.granted("a:1", 1, waited);
    const auto text = counted.text();
    BOOST_TEST(value_of(text, R"(colock_wait_seconds_bucket{prefix="a",le="0.005"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_wait_seconds_bucket{prefix="a",le="0.1"})") == "3");
    BOOST_TEST(value_of(text, R"(colock_wait_seconds_bucket{prefix="a",le="2.5"})") == "4");
    BOOST_TEST(value_of(text, R"(colock_wait_seconds_bucket{prefix="a",le="+Inf"})") == "5");
    BOOST_TEST(value_of(text, R"(colock_wait_seconds_count{prefix="a"})") == "5");
    BOOST_TEST(std::stod(value_of(text, R"(colock_wait_seconds_sum{prefix="a"})")) == 3602.010000001,
        boost::test_tools::tolerance(1e-12));
    BOOST_TEST(text.find("# TYPE colock_wait_seconds histogram\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(concurrent_events_are_all_counted)
{
    metrics counted;
    constexpr int thread_count = 4;
    constexpr int event_count = 100'000;
    std::latch start(thread_count);
    std::vector<std::thread> threads;
    for (int n = 0; n < thread_count; ++n) {
        threads.emplace_back([&counted, &start, n] {
            const std::string key = std::to_string(n % 2) + ":k";
            start.arrive_and_wait();
            for (int i = 0; i < event_count; ++i)
                counted.granted(key, 1, 1ms);
        });
    }
    for (int n = 0; n < 20; ++n)
        BOOST_TEST(!counted.text().empty());
    for (auto& each : threads)
        each.join();
    BOOST_TEST(value_of(counted, R"(colock_wait_seconds_count{prefix="0"})") == "200000");
    BOOST_TEST(value_of(counted, R"(colock_wait_seconds_count{prefix="1"})") == "200000");
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_rejected)
{
    check_refused({.max_prefixes = 10'001});
    check_refused({.wait_buckets = {}});
    check_refused({.wait_buckets = {0ms, 1ms}});
    check_refused({.wait_buckets = {2ms, 1ms}});
    check_refused({.hold_buckets = {1ms, 1ms}});
    check_refused({.hold_buckets = std::vector<std::chrono::nanoseconds>(101, 1ms)});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(metric_prefixes)

BOOST_AUTO_TEST_CASE(prefix_ends_before_the_first_delimiter)
{
    metrics counted;
    counted.waiting("order:1:x");
    counted.waiting("report");
    BOOST_TEST((prefixes_in(counted.text()) == std::set<std::string>{"order", "report"}));
    metrics by_slash({.delimiter = '/'});
    by_slash.waiting("order:1/2");
    BOOST_TEST((prefixes_in(by_slash.text()) == std::set<std::string>{"order:1"}));
}

BOOST_AUTO_TEST_CASE(further_prefixes_are_counted_as_other)
{
    metrics counted({.max_prefixes = 3});
    for (int n = 0; n < 10; ++n)
        counted.waiting(std::to_string(n) + ":k");
    counted.waiting("1:again");
    const auto text = counted.text();
    BOOST_TEST((prefixes_in(text) == std::set<std::string>{"0", "1", "2", "other"}));
    BOOST_TEST(value_of(text, R"(colock_waits_total{prefix="1"})") == "2");
    BOOST_TEST(value_of(text, R"(colock_waits_total{prefix="other"})") == "7");
    metrics single({.max_prefixes = 0});
    single.waiting("a:1");
    BOOST_TEST((prefixes_in(single.text()) == std::set<std::string>{"other"}));
}

BOOST_AUTO_TEST_CASE(prefix_named_other_is_not_written_twice)
{
    metrics counted({.max_prefixes = 2});
    for (const char* key : {"other:1", "a:1", "b:1", "c:1", "other:2"})
        counted.waiting(key);
    BOOST_TEST(value_of(counted, R"(colock_waits_total{prefix="other"})") == "3");
}

BOOST_AUTO_TEST_CASE(prefix_that_cannot_be_a_label_is_counted_as_other)
{
    metrics counted;
    for (const std::string& key :
        {std::string(":1"), std::string(), std::string("a\nb:1"), std::string("\xff:1"), std::string(129, 'k')})
        counted.waiting(key);
    BOOST_TEST((prefixes_in(counted.text()) == std::set<std::string>{"other"}));
    BOOST_TEST(value_of(counted, R"(colock_waits_total{prefix="other"})") == "5");
    counted.waiting(std::string(128, 'k'));
    BOOST_TEST(prefixes_in(counted.text()).contains(std::string(128, 'k')));
}

BOOST_AUTO_TEST_CASE(quotes_and_backslashes_in_a_prefix_are_escaped)
{
    metrics counted;
    counted.waiting("a\"b\\c:1");
    counted.waiting("\xc3\xa9:1");
    BOOST_TEST(value_of(counted, R"(colock_waits_total{prefix="a\"b\\c"})") == "1");
    BOOST_TEST(value_of(counted, "colock_waits_total{prefix=\"\xc3\xa9\"}") == "1");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(metric_gauges)

BOOST_AUTO_TEST_CASE(locks_of_all_lockers_are_added_up)
{
    const auto counted = std::make_shared<metrics>();
    virtual_fixture env(backend_kind::memory, {.observer = counted});
    const colock::locker second(env.backend(), {.observer = counted});
    auto first_held = env.acquire("a:1");
    auto second_held = env.run(second.acquire("b:1"));
    auto waiting = env.start(second.acquire("a:1"));
    env.advance(2s);
    const auto text = counted->text({*env.locker, second});
    BOOST_TEST(value_of(text, "colock_held") == "2");
    BOOST_TEST(value_of(text, "colock_waiting") == "1");
    BOOST_TEST(value_of(text, "colock_settling") == "0");
    BOOST_TEST(value_of(counted->text({second}), "colock_held") == "1");
    BOOST_TEST(value_of(*counted, "colock_held").empty());

    env.run(first_held.release());
    auto granted = waiting.get(env.io());
    env.advance(3s);
    env.run(granted.release());
    env.run(second_held.release());
    const auto after = counted->text({*env.locker, second});
    BOOST_TEST(value_of(after, "colock_held") == "0");
    BOOST_TEST(value_of(after, R"(colock_releases_total{prefix="a"})") == "2");
    BOOST_TEST(value_of(after, R"(colock_waits_total{prefix="a"})") == "1");
    BOOST_TEST(value_of(after, R"(colock_wait_seconds_bucket{prefix="a",le="1"})") == "1");
    BOOST_TEST(value_of(after, R"(colock_wait_seconds_bucket{prefix="a",le="5"})") == "2");
    BOOST_TEST(value_of(after, R"(colock_hold_seconds_bucket{prefix="b",le="5"})") == "0");
    BOOST_TEST(value_of(after, R"(colock_hold_seconds_bucket{prefix="b",le="10"})") == "1");
}

BOOST_AUTO_TEST_CASE(backend_is_up_while_all_adapters_of_its_name_can_be_reached)
{
    const metrics counted;
    virtual_fixture env(backend_kind::scripted);
    const virtual_fixture other(backend_kind::scripted);
    const std::string sample = "colock_backend_up{backend=\"" + std::string(env.backend()->traits().name) + "\"}";
    BOOST_TEST(value_of(counted.text({}, {env.backend(), other.backend(), nullptr}), sample) == "1");
    env.script->contact().set_down(errc::unavailable);
    BOOST_TEST(value_of(counted.text({}, {env.backend(), other.backend()}), sample) == "0");
    BOOST_TEST(value_of(counted.text({}, {other.backend(), env.backend()}), sample) == "0");
    env.script->contact().set_up();
    BOOST_TEST(value_of(counted.text({}, {env.backend(), other.backend()}), sample) == "1");
    BOOST_TEST(counted.text().find("colock_backend_up") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
