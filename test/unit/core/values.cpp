// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/record.hpp"
#include "core/retry_schedule.hpp"
#include "support/print.hpp"
#include "support/virtual_clock.hpp"

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/retry.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;
using colock::detail::local_deadline;
using colock::detail::retry_schedule;

namespace {

using duration = lease_clock::duration;
using time_point = lease_clock::time_point;
constexpr time_point start{1000h};

std::vector<duration> delays(const retry_policy& policy, std::size_t count)
{
    std::vector<duration> result;
    for (std::size_t number = 0; number < count; ++number) {
        if (const auto delay = policy.delay_after({number, start, {}}))
            result.push_back(*delay);
    }
    return result;
}

} // namespace

BOOST_AUTO_TEST_SUITE(retry)

BOOST_AUTO_TEST_CASE(each_kind_has_its_series)
{
    BOOST_TEST((delays(retry_policy::fixed(3s), 4) == std::vector<duration>{3s, 3s, 3s, 3s}));
    BOOST_TEST((delays(retry_policy::linear(1s, 2s), 4) == std::vector<duration>{1s, 3s, 5s, 7s}));
    BOOST_TEST(
        (delays(retry_policy::exponential(100ms, 3.0, 1s), 5) == std::vector<duration>{100ms, 300ms, 900ms, 1s, 1s}));
    BOOST_TEST((delays(retry_policy::forever(), 2) == std::vector<duration>{2s, 2s}));
    BOOST_TEST(delays(retry_policy::never(), 2).empty());
    BOOST_TEST((delays(retry_policy::fixed(0s), 2) == std::vector<duration>{0s, 0s}));
}

BOOST_AUTO_TEST_CASE(times_counts_the_retries_after_the_first_attempt)
{
    const auto policy = retry_policy::fixed(1s).jitter(0).times(2);
    retry_schedule schedule(policy, start);
    BOOST_TEST((schedule.next_at() == start));
    BOOST_TEST(schedule.failed(start + 1s));
    BOOST_TEST((schedule.next_at() == start + 2s));
    BOOST_TEST(schedule.failed(start + 5s));
    BOOST_TEST((schedule.next_at() == start + 6s));
    BOOST_TEST(!schedule.failed(start + 6s));
    BOOST_TEST(schedule.attempts() == 3U);
}

BOOST_AUTO_TEST_CASE(only_limited_policies_are_finite)
{
    BOOST_TEST(!retry_policy::forever().finite());
    BOOST_TEST(!retry_policy::exponential(1s, 2.0, 4s).finite());
    BOOST_TEST(retry_policy::never().finite());
    BOOST_TEST(retry_policy::fixed(1s).times(3).finite());
    BOOST_TEST(retry_policy::fixed(1s).total_time(3s).finite());
    BOOST_TEST(retry_policy::custom([](const retry_attempt&) { return 1s; }).finite());
}

BOOST_AUTO_TEST_CASE(total_time_is_one_absolute_deadline)
{
    const auto policy = retry_policy::fixed(1s).total_time(10s);
    retry_schedule schedule(policy, start);
    BOOST_TEST((schedule.deadline() == start + 10s));
    BOOST_TEST(schedule.failed(start + 7s));
    BOOST_TEST((schedule.deadline() == start + 10s));
    const auto unlimited = retry_policy::forever();
    BOOST_TEST((retry_schedule(unlimited, start).deadline() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(jitter_spreads_evenly_over_its_range_and_no_further)
{
    const auto policy = retry_policy::fixed(1000ms).jitter(0.5);
    duration least = 1h;
    duration most = 0s;
    for (int n = 0; n < 2000; ++n) {
        retry_schedule schedule(policy, start);
        BOOST_TEST_REQUIRE(schedule.failed(start));
        const auto delay = schedule.next_at() - start;
        least = std::min(least, delay);
        most = std::max(most, delay);
    }
    BOOST_TEST((least >= 500ms));
    BOOST_TEST((most <= 1500ms));
    // Each end is missed by 2000 draws with a probability below 1e-44.
    BOOST_TEST((least < 550ms));
    BOOST_TEST((most > 1450ms));
}

BOOST_AUTO_TEST_CASE(only_fixed_delays_have_jitter_by_default)
{
    BOOST_TEST(retry_policy::fixed(1s).jitter() == 0.2);
    BOOST_TEST(retry_policy::forever().jitter() == 0.2);
    BOOST_TEST(retry_policy::linear(1s, 1s).jitter() == 0.0);
    BOOST_TEST(retry_policy::exponential(1s, 2.0, 1h).jitter() == 0.0);
    BOOST_TEST(retry_policy::custom([](const retry_attempt&) { return 1s; }).jitter() == 0.0);
}

BOOST_AUTO_TEST_CASE(full_jitter_may_give_no_delay_but_never_a_negative_one)
{
    const auto policy = retry_policy::fixed(1s).jitter(1.0);
    for (int n = 0; n < 500; ++n) {
        retry_schedule schedule(policy, start);
        BOOST_TEST_REQUIRE(schedule.failed(start));
        BOOST_TEST((schedule.next_at() >= start && schedule.next_at() <= start + 2s));
    }
}

BOOST_AUTO_TEST_CASE(a_custom_function_hears_number_start_and_previous_delay)
{
    std::vector<retry_attempt> heard;
    const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
        heard.push_back(attempt);
        if (attempt.number == 2)
            return retry_stop;
        return attempt.number == 0 ? 7s : 0s;
    });
    retry_schedule schedule(policy, start);
    BOOST_TEST(schedule.failed(start + 1s));
    BOOST_TEST((schedule.next_at() == start + 8s));
    BOOST_TEST(schedule.failed(start + 8s));
    BOOST_TEST((schedule.next_at() == start + 8s));
    BOOST_TEST(!schedule.failed(start + 9s));
    BOOST_TEST_REQUIRE(heard.size() == 3U);
    for (std::size_t n = 0; n < heard.size(); ++n) {
        BOOST_TEST(heard[n].number == n);
        BOOST_TEST((heard[n].start == start));
    }
    BOOST_TEST((heard[0].previous_delay == 0s));
    BOOST_TEST((heard[1].previous_delay == 7s));
    BOOST_TEST((heard[2].previous_delay == 0s));
}

BOOST_AUTO_TEST_CASE(a_custom_function_may_be_limited_and_may_throw)
{
    const auto limited = retry_policy::custom([](const retry_attempt&) { return 1s; }).times(1);
    retry_schedule schedule(limited, start);
    BOOST_TEST(schedule.failed(start));
    BOOST_TEST(!schedule.failed(start));

    const auto thrower =
        retry_policy::custom([](const retry_attempt&) -> retry_decision { throw std::domain_error("no"); });
    retry_schedule failing(thrower, start);
    BOOST_CHECK_THROW(static_cast<void>(failing.failed(start)), std::domain_error);
}

BOOST_AUTO_TEST_CASE(a_decision_clamps_what_it_is_given)
{
    BOOST_TEST((*retry_decision(-3s).delay() == 0s));
    BOOST_TEST((*retry_decision(std::chrono::nanoseconds::min()).delay() == 0s));
    BOOST_TEST((*retry_decision(1500us).delay() == 1500us));
    BOOST_TEST((*retry_decision(std::chrono::duration<double>(0.25)).delay() == 250ms));
    BOOST_TEST(!retry_decision(retry_stop).delay());
    const duration longest = std::chrono::hours(24 * 3650);
    BOOST_TEST((*retry_decision(std::chrono::hours::max()).delay() == longest));
    BOOST_TEST((*retry_decision(std::chrono::seconds::max()).delay() == longest));
    BOOST_TEST((*retry_decision(std::chrono::duration<double>(1e300)).delay() == longest));
}

BOOST_AUTO_TEST_CASE(delays_that_overflow_saturate)
{
    const auto exponential = retry_policy::exponential(1h, 1000.0, duration::max());
    for (const std::size_t number : {5UL, 500UL, std::numeric_limits<std::size_t>::max()})
        BOOST_TEST((*exponential.delay_after({number, start, {}}) == duration::max()));
    const auto linear = retry_policy::linear(duration::max(), duration::max());
    BOOST_TEST((*linear.delay_after({0, start, {}}) == duration::max()));
    BOOST_TEST((*linear.delay_after({1'000'000, start, {}}) == duration::max()));
    const auto nothing = retry_policy::exponential(0s, 10.0, 1h);
    for (const std::size_t number : {0UL, 3UL, 100'000UL})
        BOOST_TEST((*nothing.delay_after({number, start, {}}) == 0s));

    for (const double jitter : {0.0, 1.0}) {
        const auto policy = retry_policy::fixed(duration::max()).jitter(jitter);
        retry_schedule schedule(policy, start);
        BOOST_TEST(schedule.failed(start));
        BOOST_TEST((schedule.next_at() >= start));
        if (jitter == 0.0)
            BOOST_TEST((schedule.next_at() == time_point::max()));
    }
    const auto endless = retry_policy::fixed(1s).total_time(duration::max());
    BOOST_TEST((retry_schedule(endless, start).deadline() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(every_contradiction_is_named)
{
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    const auto infinite = std::numeric_limits<double>::infinity();
    const struct
    {
        retry_policy policy;
        std::string names;
    } refused[] = {
        {retry_policy::fixed(-1ms), "delay"},
        {retry_policy::linear(-1ms, 1s), "delay"},
        {retry_policy::linear(1s, -1ms), "step"},
        {retry_policy::exponential(-1s, 2.0, 1h), "delay"},
        {retry_policy::exponential(1s, 0.99, 1h), "factor"},
        {retry_policy::exponential(1s, -2.0, 1h), "factor"},
        {retry_policy::exponential(1s, nan, 1h), "factor"},
        {retry_policy::exponential(1s, infinite, 1h), "factor"},
        {retry_policy::exponential(2s, 2.0, 1s), "cap"},
        {retry_policy::fixed(1s).jitter(-0.01), "jitter"},
        {retry_policy::fixed(1s).jitter(1.01), "jitter"},
        {retry_policy::fixed(1s).jitter(nan), "jitter"},
        {retry_policy::fixed(1s).total_time(0s), "total time"},
        {retry_policy::fixed(1s).total_time(-1s), "total time"},
        {retry_policy::custom(nullptr), "custom"},
        {retry_policy::custom([](const retry_attempt&) { return 1s; }).jitter(0.5), "custom"},
    };
    for (const auto& [policy, names] : refused) {
        BOOST_TEST_CONTEXT("names " << names)
        {
            BOOST_TEST(policy.problem().find(names) != std::string::npos, policy.problem());
        }
    }
    const retry_policy accepted[] = {
        retry_policy::fixed(0s),
        retry_policy::linear(0s, 0s),
        retry_policy::exponential(0s, 1.0, 0s),
        retry_policy::exponential(1s, 1.0, 1s),
        retry_policy::fixed(1s).jitter(0).times(0),
        retry_policy::fixed(1s).jitter(1).total_time(1ns),
        retry_policy::custom([](const retry_attempt&) { return 1s; }).times(3).total_time(1s),
        retry_policy::forever(),
        retry_policy::never(),
    };
    for (const auto& policy : accepted)
        BOOST_TEST(policy.problem().empty(), policy.problem());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(every_message_has_a_cause_and_a_remedy)
{
    std::set<std::string> messages;
    int value = 1;
    for (; value <= static_cast<int>(errc::forked); ++value) {
        const error_code code = static_cast<errc>(value);
        BOOST_TEST(code.category().name() == std::string("colock"));
        const auto message = code.message();
        const auto border = message.find("; ");
        BOOST_TEST_CONTEXT(message)
        {
            BOOST_TEST_REQUIRE(border != std::string::npos);
            BOOST_TEST(border > 10U);
            BOOST_TEST(message.size() - border > 10U);
            BOOST_TEST(messages.insert(message).second);
            BOOST_TEST(message.find("unknown error") == std::string::npos);
        }
    }
    BOOST_TEST(messages.size() == 14U);
    // There is none behind the last: the walk above has seen all.
    BOOST_TEST(colock_category().message(value).find("unknown error") == 0U);
    BOOST_TEST(colock_category().message(0).find("unknown error") == 0U);
}

BOOST_AUTO_TEST_CASE(codes_compare_with_the_enumeration)
{
    const error_code code = errc::lost;
    BOOST_TEST((code == errc::lost));
    BOOST_TEST((code != errc::not_held));
    BOOST_TEST(code.failed());
}

BOOST_AUTO_TEST_CASE(an_exception_carries_its_context)
{
    const auto cause = make_error_code(boost::system::errc::connection_reset);
    const create_error failed(errc::unavailable, {.key = "cart:7",
                                                     .backend = "memory",
                                                     .attempts = 3,
                                                     .elapsed = 1500ms,
                                                     .cause = cause,
                                                     .detail = "the link is down"});
    BOOST_TEST((failed.code() == errc::unavailable));
    BOOST_TEST(failed.key() == "cart:7");
    BOOST_TEST(failed.backend() == "memory");
    BOOST_TEST(failed.attempts() == 3U);
    BOOST_TEST((failed.elapsed() == 1500ms));
    BOOST_TEST((failed.cause() == cause));
    BOOST_TEST(failed.detail() == "the link is down");
    const std::string what = failed.what();
    for (const auto& part : {std::string("cart:7"), std::string("memory"), std::string("3 attempts"),
             std::string("1500 ms"), cause.message(), std::string("the link is down"), failed.code().message()})
    {
        BOOST_TEST(what.find(part) != std::string::npos, what << " lacks " << part);
    }
    const validation_error bare(errc::invalid_key, {});
    BOOST_TEST(bare.key().empty());
    BOOST_TEST(!bare.cause());
    BOOST_TEST(bare.attempts() == 0U);
}

BOOST_AUTO_TEST_CASE(a_detail_that_says_all_is_followed_by_nothing_general)
{
    struct row
    {
        errc code;
        const char* detail;
        bool general;
    };
    const row rows[] = {
        {errc::invalid_key, "the key is empty", false},
        {errc::invalid_ttl, "the ttl is -1 ms; give a positive one", false},
        {errc::invalid_retry, "the delay is -1 ms", false},
        {errc::invalid_options, "the adapter is null; make one", false},
        {errc::unsupported, "memory cannot list its locks", true},
        {errc::unsupported, "memory has no semaphores; leave max_holders 0", false},
        {errc::misconfigured_backend, "the server is too old; update it", false},
        {errc::misconfigured_backend, "the server answered: NO", true},
        {errc::unavailable, "the grant arrived late; use a longer ttl", false},
        {errc::unavailable, "the server answered: LOADING", true},
        {errc::retry_exhausted, "held by me", true},
        {errc::not_held, "its lease had ended: expired", true},
        {errc::lost, "its lease had ended: broken", true},
        {errc::outcome_unknown, "no answer in time", true},
        {errc::access_denied, "the server answered: NOPERM", true},
        {errc::shutting_down, "", true},
        {errc::invalid_options, "", true},
    };
    for (const auto& row : rows) {
        const error failed(row.code, {.key = "k", .backend = "memory", .detail = row.detail});
        const std::string what = failed.what();
        BOOST_TEST_CONTEXT(what)
        {
            const auto at = what.find(failed.code().message());
            BOOST_TEST((at != what.npos) == row.general);
            BOOST_TEST(what.starts_with(std::string("colock memory \"k\": ") + row.detail));
            BOOST_TEST(what.ends_with("[colock:" + std::to_string(failed.code().value()) + "]"));
            BOOST_TEST(what.find(": :") == what.npos);
        }
    }
    BOOST_TEST(
        std::string(error(errc::invalid_key, {.key = "k", .detail = "no"}).what()) == "colock \"k\": no [colock:6]");
}

BOOST_AUTO_TEST_CASE(a_message_is_one_line_whatever_the_key)
{
    const auto shown = [](std::string key) {
        const std::string what = error(errc::invalid_key, {.key = std::move(key), .detail = "d"}).what();
        return what.substr(7, what.size() - 7 - std::string(": d [colock:6]").size());
    };
    using namespace std::string_literals;
    BOOST_TEST(shown("cart:7") == R"("cart:7")");
    BOOST_TEST(shown("a\0b"s) == R"("a\x00b")");
    BOOST_TEST(shown("a\nb\x1b[31m\x7f") == R"("a\x0ab\x1b[31m\x7f")");
    BOOST_TEST(shown(R"(a"b\c)") == R"("a\"b\\c")");
    BOOST_TEST(shown("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92") ==
               "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92\"");
    // No UTF-8, a character that is cut off, a control character of two bytes.
    BOOST_TEST(shown("\xff\x80\xc3") == R"("\xff\x80\xc3")");
    BOOST_TEST(shown("\xe2\x82") == R"("\xe2\x82")");
    BOOST_TEST(shown("\xc2\x9b") == R"("\xc2\x9b")");
    BOOST_TEST(shown(std::string(80, 'k')) == '"' + std::string(80, 'k') + '"');
    BOOST_TEST(shown(std::string(513, 'k')) == '"' + std::string(80, 'k') + "...\" (513 bytes)");
    BOOST_TEST(shown(std::string(79, 'k') + "\xe2\x82\xac") == '"' + std::string(79, 'k') + "...\" (82 bytes)");
    // Nor whatever a server says; the detail itself is kept as it is.
    const error failed(errc::unavailable, {.detail = "two\nlines \"quoted\""});
    BOOST_TEST(std::string(failed.what()).find("two\\x0alines \"quoted\"") != std::string::npos);
    BOOST_TEST(failed.detail() == "two\nlines \"quoted\"");
}

template <class... Exceptions>
void check_family()
{
    static_assert((std::is_base_of_v<error, Exceptions> && ...));
    static_assert((std::is_base_of_v<boost::system::system_error, Exceptions> && ...));
    static_assert((std::is_nothrow_copy_constructible_v<Exceptions> && ...));
    static_assert((std::is_nothrow_copy_assignable_v<Exceptions> && ...));
}

BOOST_AUTO_TEST_CASE(copies_do_not_throw_and_are_equal)
{
    check_family<create_error, retry_error, release_error, extend_error, lost_error, validation_error>();
    const release_error original(errc::not_held, {.key = std::string(500, 'k'), .detail = std::string(500, 'd')});
    const release_error copy(original);
    BOOST_TEST(copy.key() == original.key());
    BOOST_TEST(std::string(copy.what()) == original.what());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE(hex_is_32_lower_case_digits_of_the_bytes)
{
    const token known({0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xab, 0xff, 0, 1, 2, 3, 4, 5, 6, 0xfe});
    BOOST_TEST(known.hex() == "00010f107f80abff000102030405"
                              "06fe");
    const auto hex = token::generate().hex();
    BOOST_TEST(hex.size() == 32U);
    BOOST_TEST(hex.find_first_not_of("0123456789abcdef") == std::string::npos);
    char written[33] = "________________________________";
    known.hex_to(written);
    BOOST_TEST(std::string(written) == known.hex());
}

BOOST_AUTO_TEST_CASE(none_is_empty_and_none_comes_twice)
{
    BOOST_TEST(token().empty());
    std::set<std::string> seen;
    constexpr std::size_t each = 10'000;
    std::vector<std::string> elsewhere;
    std::thread other([&] {
        for (std::size_t n = 0; n < each; ++n)
            elsewhere.push_back(token::generate().hex());
    });
    for (std::size_t n = 0; n < each; ++n) {
        const auto made = token::generate();
        BOOST_TEST_REQUIRE(!made.empty());
        seen.insert(made.hex());
    }
    other.join();
    seen.insert(elsewhere.begin(), elsewhere.end());
    BOOST_TEST(seen.size() == 2 * each);
}

BOOST_AUTO_TEST_CASE(every_bit_varies)
{
    token::bytes_type ones{}, zeros{};
    for (int n = 0; n < 256; ++n) {
        const auto made = token::generate();
        for (std::size_t byte = 0; byte < token::size; ++byte) {
            ones[byte] = static_cast<unsigned char>(ones[byte] | made.bytes()[byte]);
            zeros[byte] = static_cast<unsigned char>(zeros[byte] | static_cast<unsigned char>(~made.bytes()[byte]));
        }
    }
    for (std::size_t byte = 0; byte < token::size; ++byte) {
        BOOST_TEST(ones[byte] == 0xff);
        BOOST_TEST(zeros[byte] == 0xff);
    }
}

BOOST_AUTO_TEST_CASE(a_child_process_makes_others_than_its_parent)
{
    // Fills the buffer that a careless child would go on with.
    static_cast<void>(token::generate());
    constexpr std::size_t count = 100;
    int channel[2];
    BOOST_TEST_REQUIRE(::pipe(channel) == 0);
    const auto child = ::fork();
    BOOST_TEST_REQUIRE(child >= 0);
    if (child == 0) {
        bool sent = true;
        for (std::size_t n = 0; n < count; ++n) {
            const auto made = token::generate();
            sent = sent && ::write(channel[1], made.bytes().data(), token::size) == ssize_t{token::size};
        }
        ::_exit(sent ? 0 : 1);
    }
    ::close(channel[1]);
    std::set<token::bytes_type> seen;
    token::bytes_type received;
    while (::read(channel[0], received.data(), received.size()) == ssize_t{token::size})
        seen.insert(received);
    ::close(channel[0]);
    int status = 1;
    ::waitpid(child, &status, 0);
    BOOST_TEST(status == 0);
    BOOST_TEST(seen.size() == count);
    for (std::size_t n = 0; n < count; ++n)
        BOOST_TEST(seen.insert(token::generate().bytes()).second);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(clocks)

BOOST_AUTO_TEST_CASE(saturating_add_never_overflows)
{
    BOOST_TEST((saturating_add(start, 5s) == start + 5s));
    BOOST_TEST((saturating_add(start, 0s) == start));
    BOOST_TEST((saturating_add(start, -5s) == start));
    BOOST_TEST((saturating_add(start, duration::min()) == start));
    BOOST_TEST((saturating_add(start, duration::max()) == time_point::max()));
    BOOST_TEST((saturating_add(time_point::max(), 1ns) == time_point::max()));
    BOOST_TEST((saturating_add(time_point::max() - 1ns, 1ns) == time_point::max()));
}

BOOST_AUTO_TEST_CASE(no_single_wait_is_longer_than_five_seconds)
{
    using traits = asio::wait_traits<lease_clock>;
    BOOST_TEST((traits::to_wait_duration(duration(1s)) == 1s));
    BOOST_TEST((traits::to_wait_duration(duration(1h)) == 5s));
    BOOST_TEST((traits::to_wait_duration(time_point::max()) == 5s));
    BOOST_TEST((traits::to_wait_duration(time_point::min()) == 0s));
    BOOST_TEST((traits::to_wait_duration(lease_clock::now() - 1h) == 0s));
    const auto soon = traits::to_wait_duration(lease_clock::now() + 3s);
    BOOST_TEST((soon > 1s && soon <= 3s));
}

BOOST_AUTO_TEST_CASE(the_clock_only_goes_forward)
{
    auto last = lease_clock::now();
    for (int n = 0; n < 1000; ++n) {
        const auto next = lease_clock::now();
        BOOST_TEST_REQUIRE((next >= last));
        last = next;
    }
    static_assert(lease_clock::is_steady);
}

BOOST_AUTO_TEST_CASE(a_local_deadline_is_on_the_safe_side)
{
    BOOST_TEST((local_deadline(start, 30s) == start + 30s - 300ms - 2ms));
    BOOST_TEST((local_deadline(start, 100ms) == start + 97ms));
    BOOST_TEST((local_deadline(start, 1h) == start + 1h - 36s - 2ms));
    BOOST_TEST((local_deadline(start, 0ms) == time_point::max()));
    BOOST_TEST((local_deadline(time_point::max() - 1s, 1h) == time_point::max()));
}

BOOST_AUTO_TEST_CASE(a_lease_ends_with_the_nearer_bound)
{
    lease bounds;
    BOOST_TEST((bounds.valid_until() == time_point::max()));
    bounds.set_ttl_bound(start + 10s);
    BOOST_TEST((bounds.valid_until() == start + 10s));
    bounds.set_session_bound(start + 5s);
    BOOST_TEST((bounds.valid_until() == start + 5s));
    BOOST_TEST((bounds.ttl_bound() == start + 10s));
    bounds.set_session_bound(start + 20s);
    BOOST_TEST((bounds.valid_until() == start + 10s));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(filters)

BOOST_AUTO_TEST_CASE(each_field_decides_by_itself)
{
    const auto noon = std::chrono::system_clock::time_point(std::chrono::hours(12));
    lock_status status;
    status.key = "cart:7";
    status.group = "g";
    status.mode = lock_mode::shared;
    status.owner = "me";
    status.created = noon;
    status.remaining = 10s;
    lock_status timeless = status;
    timeless.created.reset();
    timeless.remaining.reset();

    BOOST_TEST(filter{}.matches(status));
    BOOST_TEST(filter{}.matches(timeless));

    const struct
    {
        const char* what;
        filter which;
        bool matches;
        bool matches_timeless;
    } table[] = {
        {"key", {.key = "cart:7"}, true, true},
        {"another key", {.key = "cart:"}, false, false},
        {"prefix", {.key_prefix = "cart:"}, true, true},
        {"empty prefix", {.key_prefix = ""}, true, true},
        {"another prefix", {.key_prefix = "art"}, false, false},
        {"group", {.group = "g"}, true, true},
        {"no group", {.group = ""}, false, false},
        {"owner", {.owner = "me"}, true, true},
        {"another owner", {.owner = "m"}, false, false},
        {"mode", {.mode = lock_mode::shared}, true, true},
        {"another mode", {.mode = lock_mode::exclusive}, false, false},
        {"created before a later moment", {.created_before = noon + 1s}, true, false},
        {"created before that moment", {.created_before = noon}, false, false},
        {"created at that moment or later", {.created_after = noon}, true, false},
        {"created after a later moment", {.created_after = noon + 1s}, false, false},
        {"less than more remains", {.remaining_below = 10001ms}, true, false},
        {"less than that remains", {.remaining_below = 10s}, false, false},
        {"at least that remains", {.remaining_at_least = 10s}, true, true},
        {"at least more remains", {.remaining_at_least = 10001ms}, false, true},
        {"all at once", {.key = "cart:7", .key_prefix = "c", .group = "g", .owner = "me", .mode = lock_mode::shared},
            true, true},
        {"one of them not", {.key = "cart:7", .key_prefix = "c", .group = "g", .owner = "you"}, false, false},
    };
    for (const auto& row : table) {
        BOOST_TEST_CONTEXT(row.what)
        {
            BOOST_TEST(row.which.matches(status) == row.matches);
            BOOST_TEST(row.which.matches(timeless) == row.matches_timeless);
        }
    }
}

BOOST_AUTO_TEST_CASE(every_reason_and_mode_has_its_word)
{
    std::set<std::string> words;
    for (int value = 0; value <= static_cast<int>(lost_reason::forked); ++value)
        words.insert(to_string(static_cast<lost_reason>(value)));
    BOOST_TEST(words.size() == 7U);
    BOOST_TEST(!words.contains("unknown"));
    BOOST_TEST(to_string(lock_mode::exclusive) == std::string("exclusive"));
    BOOST_TEST(to_string(lock_mode::shared) == std::string("shared"));
}

BOOST_AUTO_TEST_SUITE_END()
