// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/retry_schedule.hpp"
#include "core/state/lock_record.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/retry_policy.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;
using colock::detail::local_expiry;
using colock::detail::retry_schedule;

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(codes_reasons_and_modes_can_be_printed)
{
    std::ostringstream out;
    out << errc::lost << ' ' << error_code(errc::lost) << ' ' << lost_reason::broken << ' ' << lock_mode::shared;
    BOOST_TEST(out.str() == "lost colock:3 broken shared");
}

BOOST_AUTO_TEST_CASE(every_message_has_a_cause_and_a_remedy)
{
    std::set<std::string> messages;
    std::set<std::string> names;
    int value = 1;
    for (; value <= static_cast<int>(errc::shutting_down); ++value) {
        const error_code code = static_cast<errc>(value);
        BOOST_TEST(code.category().name() == std::string("colock"));
        const auto message = code.message();
        const auto separator = message.find("; ");
        const auto name = to_string(static_cast<errc>(value)) + std::string(": ");
        BOOST_TEST_CONTEXT(message)
        {
            BOOST_TEST_REQUIRE(separator != std::string::npos);
            BOOST_TEST(message.starts_with(name));
            BOOST_TEST(names.insert(name).second);
            BOOST_TEST(separator > name.size() + 10U);
            // A caller of an async_ function has only the code, so the message says how to get the exception.
            BOOST_TEST(
                (message.find("exception") == message.npos) == (message.find("with_diagnostics") == message.npos));
            BOOST_TEST(message.find("the detail") == message.npos);
            BOOST_TEST(message.size() - separator > 10U);
            BOOST_TEST(messages.insert(message).second);
            BOOST_TEST(message.find("unknown error") == std::string::npos);
        }
    }
    BOOST_TEST(messages.size() == 13U);
    BOOST_TEST(to_string(static_cast<errc>(value)) == std::string("unknown"));
    // There is no code after the last one, so the loop above has seen all.
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
             std::string("1500 ms"), cause.message(), std::string("the link is down"),
             std::string("the backend cannot be reached"), std::string("[colock:5 unavailable]")})
    {
        BOOST_TEST(what.find(part) != std::string::npos, what << " lacks " << part);
    }
    const validation_error bare(errc::invalid_key, {});
    BOOST_TEST(bare.key().empty());
    BOOST_TEST(!bare.cause());
    BOOST_TEST(bare.attempts() == 0U);
}

BOOST_AUTO_TEST_CASE(cause_that_the_detail_contains_is_not_repeated)
{
    const auto cause = make_error_code(boost::system::errc::connection_refused);
    const create_error named(errc::unavailable, {.cause = cause, .detail = "127.0.0.1:1: " + cause.message()});
    BOOST_TEST(std::string(named.what()).find("cause: ") == std::string::npos, named.what());
    const create_error other(errc::unavailable, {.cause = cause, .detail = "not sent"});
    BOOST_TEST(std::string(other.what()).find("(cause: " + cause.message() + ")") != std::string::npos, other.what());
}

BOOST_AUTO_TEST_CASE(complete_detail_is_not_followed_by_the_general_message)
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
        {errc::invalid_ttl, "the ttl is -1 ms", false},
        {errc::invalid_retry, "the delay is -1 ms", false},
        {errc::invalid_options, "the adapter is null; make one", false},
        {errc::invalid_options, "the adapter is null", false},
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
            const std::string name = to_string(row.code);
            const auto at = what.find(failed.code().message().substr(name.size() + 2));
            BOOST_TEST((at != what.npos) == row.general);
            BOOST_TEST(what.starts_with(std::string("colock memory \"k\": ") + row.detail));
            BOOST_TEST(what.ends_with("[colock:" + std::to_string(failed.code().value()) + " " + name + "]"));
            BOOST_TEST(what.find(": :") == what.npos);
        }
    }
    BOOST_TEST(std::string(error(errc::invalid_key, {.key = "k", .detail = "no"}).what()) ==
               "colock \"k\": no [colock:6 invalid_key]");
}

namespace {

/// The category of a third-party driver.
struct third_party_category final : boost::system::error_category
{
    [[nodiscard]] const char* name() const noexcept override { return "talkative"; }
    [[nodiscard]] std::string message(int) const override { return "three\n\xfflines"; }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_message_is_one_line_whatever_the_key)
{
    const auto shown = [](std::string key) {
        const std::string what = error(errc::invalid_key, {.key = std::move(key), .detail = "d"}).what();
        return what.substr(7, what.size() - 7 - std::string(": d [colock:6 invalid_key]").size());
    };
    using namespace std::string_literals;
    BOOST_TEST(shown("cart:7") == R"("cart:7")");
    BOOST_TEST(shown("a\0b"s) == R"("a\x00b")");
    BOOST_TEST(shown("a\nb\x1b[31m\x7f") == R"("a\x0ab\x1b[31m\x7f")");
    BOOST_TEST(shown(R"(a"b\c)") == R"("a\"b\\c")");
    BOOST_TEST(shown("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92") ==
               "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92\"");
    // Invalid UTF-8, characters that are cut off, and a control character of two bytes.
    BOOST_TEST(shown("\xff\x80\xc3") == R"("\xff\x80\xc3")");
    BOOST_TEST(shown("\xe2\x82") == R"("\xe2\x82")");
    BOOST_TEST(shown("\xc3(\xe2\x82.") == R"("\xc3(\xe2\x82.")");
    BOOST_TEST(shown("\xc2\x9b") == R"("\xc2\x9b")");
    BOOST_TEST(shown(std::string(80, 'k')) == '"' + std::string(80, 'k') + '"');
    BOOST_TEST(shown(std::string(513, 'k')) == '"' + std::string(80, 'k') + "...\" (513 bytes)");
    BOOST_TEST(shown(std::string(79, 'k') + "\xe2\x82\xac") == '"' + std::string(79, 'k') + "...\" (82 bytes)");
    // A server's text is made printable, too. The detail itself is kept unchanged.
    const error failed(errc::unavailable, {.detail = "two\nlines \"quoted\""});
    BOOST_TEST(std::string(failed.what()).find("two\\x0alines \"quoted\"") != std::string::npos);
    BOOST_TEST(failed.detail() == "two\nlines \"quoted\"");
    const third_party_category third_party;
    const error caused(errc::unavailable, {.cause = error_code(1, third_party)});
    BOOST_TEST(std::string(caused.what()).find("(cause: three\\x0a\\xfflines)") != std::string::npos, caused.what());
}

template <class... Exceptions>
void check_family()
{
    static_assert((std::is_base_of_v<error, Exceptions> && ...));
    static_assert((std::is_base_of_v<boost::system::system_error, Exceptions> && ...));
    static_assert((std::is_nothrow_copy_constructible_v<Exceptions> && ...));
    static_assert((std::is_nothrow_copy_assignable_v<Exceptions> && ...));
}

BOOST_AUTO_TEST_CASE(code_of_another_category_is_named_by_its_number)
{
    const third_party_category third_party;
    const std::string what = error(error_code(1, third_party), {.key = "k"}).what();
    BOOST_TEST(what.ends_with("three\n\xfflines [talkative:1]"), what);
}

BOOST_AUTO_TEST_CASE(a_shutdown_is_recognized_in_every_form)
{
    struct row
    {
        const char* what;
        std::exception_ptr failure;
        bool expected;
    };
    using boost::system::system_error;
    const row rows[] = {
        {"acquire during a shutdown", std::make_exception_ptr(create_error(errc::shutting_down, {})), true},
        {"extend during a shutdown", std::make_exception_ptr(extend_error(errc::shutting_down, {})), true},
        {"body cancelled by a shutdown",
            std::make_exception_ptr(lost_error(errc::lost, {.reason = lost_reason::shutting_down})), true},
        {"code only", std::make_exception_ptr(system_error(errc::shutting_down)), true},
        {"lost by expiry", std::make_exception_ptr(lost_error(errc::lost, {.reason = lost_reason::expired})), false},
        {"another error", std::make_exception_ptr(create_error(errc::unavailable, {})), false},
        {"another code", std::make_exception_ptr(system_error(errc::lost)), false},
        {"code of another category with the same number",
            std::make_exception_ptr(
                system_error(error_code(static_cast<int>(errc::shutting_down), boost::system::generic_category()))),
            false},
        {"foreign exception", std::make_exception_ptr(std::runtime_error("no")), false},
        {"no exception object", std::make_exception_ptr(7), false},
        {"success", nullptr, false},
    };
    for (const auto& row : rows)
        BOOST_TEST(is_shutting_down(row.failure) == row.expected, row.what);
    static_assert(noexcept(is_shutting_down(std::exception_ptr())));
    static_assert(noexcept(is_shutting_down(std::declval<const error&>())));
    BOOST_TEST(is_shutting_down(lost_error(errc::lost, {.reason = lost_reason::shutting_down})));
    BOOST_TEST(is_shutting_down(error(errc::shutting_down, {})));
    BOOST_TEST(!is_shutting_down(error(errc::lost, {})));
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
