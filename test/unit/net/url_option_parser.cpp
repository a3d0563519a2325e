// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/url_option_parser.hpp"

#include <colock/error.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace colock::testing {
namespace {

using namespace std::chrono_literals;

enum class color : unsigned char
{
    red,
    green,
};

struct inner_options
{
    std::string file{};
};

struct options
{
    std::chrono::milliseconds delay{5};
    std::optional<std::chrono::milliseconds> lead{};
    std::size_t count = 8;
    std::string text = "unset";
    std::optional<std::string> prefix{};
    testing::color color = testing::color::red;
    inner_options inner{};
};

constexpr std::string_view colors[] = {"red", "green"};

constexpr remote::url_option<options> known[] = {
    {"delay", remote::set_member<&options::delay>},
    {"lead", remote::set_member<&options::lead>},
    {"count", remote::set_member<&options::count>},
    {"text", remote::set_member<&options::text>},
    {"prefix", remote::set_member<&options::prefix>},
    {"color", remote::set_choice<colors, &options::color>},
    {"inner.file", remote::set_member<&options::inner, &inner_options::file>},
};

/// Returns the URL without the options.
std::string take(options& to, const std::string& query)
{
    const std::string text = "s://u:p@h/path" + query;
    return remote::take_url_options(remote::url(text, "some backend", "s://h"), known, to);
}

options options_of(const std::string& query)
{
    options all;
    BOOST_TEST(take(all, query) == "s://u:p@h/path");
    return all;
}

std::string refusal_of(const std::string& query, options all = {})
{
    try {
        static_cast<void>(take(all, query));
    } catch (const validation_error& refused) {
        BOOST_TEST((refused.code() == errc::invalid_options));
        BOOST_TEST(refused.backend() == "some backend");
        BOOST_TEST(refused.detail().find("secret") == std::string::npos);
        return refused.detail();
    }
    return {};
}

} // namespace

BOOST_AUTO_TEST_SUITE(url_options)

BOOST_AUTO_TEST_CASE(each_kind_of_value_is_parsed)
{
    const auto all =
        options_of("?delay=2s&lead=0ms&count=12&text=a%26b%20c+d=e&prefix=&color=green&inner.file=/etc/ca.pem");
    BOOST_TEST((all.delay == 2s));
    BOOST_TEST((all.lead == 0ms));
    BOOST_TEST(all.count == 12U);
    BOOST_TEST(all.text == "a&b c+d=e");
    BOOST_TEST(all.prefix.value() == "");
    BOOST_TEST((all.color == color::green));
    BOOST_TEST(all.inner.file == "/etc/ca.pem");
    BOOST_TEST((options_of("?delay=500ms").delay == 500ms));
    BOOST_TEST((options_of("?delay=5m").delay == 5min));
    BOOST_TEST((options_of("?delay=1h").delay == 1h));
    BOOST_TEST((options_of("?delay=max").delay == std::chrono::milliseconds::max()));
    BOOST_TEST((options_of("?delay=9223372036854775807ms").delay == std::chrono::milliseconds::max()));
}

BOOST_AUTO_TEST_CASE(options_that_the_url_does_not_give_keep_their_values)
{
    options all{.delay = 7ms, .text = "mine"};
    BOOST_TEST(take(all, "?count=1&&") == "s://u:p@h/path");
    BOOST_TEST((all.delay == 7ms));
    BOOST_TEST(all.text == "mine");
    BOOST_TEST(!all.lead.has_value());
    BOOST_TEST(take(all, "") == "s://u:p@h/path");
}

BOOST_AUTO_TEST_CASE(other_parameters_stay_in_the_url)
{
    options all;
    BOOST_TEST(take(all, "?a=%31&count=1&b=2") == "s://u:p@h/path?a=%31&b=2");
    BOOST_TEST(take(all, "?Count=1") == "s://u:p@h/path?Count=1");
}

BOOST_AUTO_TEST_CASE(malformed_value_is_refused_with_its_key)
{
    const std::string no_duration = "the URL's delay is not a duration; write a whole number and a unit";
    const std::pair<const char*, std::string> refused[] = {
        {"?delay=5", "the URL's delay has no unit; write 500ms, 2s, 5m or 1h"},
        {"?delay=0", "the URL's delay has no unit"},
        {"?delay=", no_duration},
        {"?delay=secret", no_duration},
        {"?delay=-5s", no_duration},
        {"?delay=+5s", no_duration},
        {"?delay= 5s", no_duration},
        {"?delay=1.5s", no_duration},
        {"?delay=5S", no_duration},
        {"?delay=5s%20", no_duration},
        {"?delay=5days", no_duration},
        {"?delay=9223372036854775808ms", "the URL's delay is too large"},
        {"?delay=9223372036854776s", "the URL's delay is too large"},
        {"?delay=99999999999999999999s", "the URL's delay is too large"},
        {"?lead=5", "the URL's lead has no unit"},
        {"?count=-1", "the URL's count is not a whole number"},
        {"?count=", "the URL's count is not a whole number"},
        {"?count=8x", "the URL's count is not a whole number"},
        {"?count=99999999999999999999", "the URL's count is too large"},
        {"?color=secret", "the URL's color is none of red, green"},
        {"?color=", "the URL's color is none of red, green"},
        {"?color=Red", "the URL's color is none of red, green"},
        {"?text=secret%4", "the URL's text has a '%' without two hexadecimal digits"},
        {"?text=secret%00", "the URL's text holds a control character"},
        {"?count=1&count=1", "the URL's count is given twice"},
        {"?text", "a parameter without a value"},
        {"?text=a#secret", "a fragment"},
    };
    for (const auto& [query, why] : refused) {
        BOOST_TEST_CONTEXT(query)
        {
            const auto refusal = refusal_of(query);
            BOOST_TEST(refusal.find(why) != std::string::npos, refusal);
        }
    }
}

BOOST_AUTO_TEST_CASE(option_that_differs_between_url_and_program_is_refused)
{
    const auto conflict = [](const std::string& name) {
        return "the URL's " + name +
               " differs from the value that the program has set; give it in one of the two places";
    };
    BOOST_TEST(refusal_of("?delay=6ms", {.delay = 7ms}) == conflict("delay"));
    BOOST_TEST(refusal_of("?lead=6ms", {.lead = 7ms}) == conflict("lead"));
    BOOST_TEST(refusal_of("?text=secret", {.text = "mine"}) == conflict("text"));
    BOOST_TEST(refusal_of("?color=red", {.color = color::green}) == conflict("color"));
    BOOST_TEST(refusal_of("?inner.file=secret", {.inner = {.file = "mine"}}) == conflict("inner.file"));
    BOOST_TEST(refusal_of("?delay=5ms", {.delay = 7ms}) == conflict("delay"));
    BOOST_TEST(refusal_of("?delay=7ms", {.delay = 7ms}) == "");
    BOOST_TEST(refusal_of("?delay=7ms", {.delay = 5ms}) == "");
    BOOST_TEST(refusal_of("?text=mine", {.text = "mine"}) == "");

    std::string user = "in the URL";
    remote::use_program_value(user, "", "user", "some backend");
    BOOST_TEST(user == "in the URL");
    remote::use_program_value(user, "in the URL", "user", "some backend");
    BOOST_CHECK_THROW(remote::use_program_value(user, "other", "user", "some backend"), validation_error);
    user.clear();
    remote::use_program_value(user, "other", "user", "some backend");
    BOOST_TEST(user == "other");
}

BOOST_AUTO_TEST_CASE(unknown_parameter_is_named_unless_it_may_be_a_password)
{
    const auto refusal = [](const char* text) {
        try {
            remote::url(text, "some backend", "s://h").refuse_parameters("a, b");
        } catch (const validation_error& refused) {
            return refused.detail();
        }
        return std::string();
    };
    BOOST_TEST(
        refusal("s://h?c.d_1=secret") == "the URL has a parameter that is not known: c.d_1; those that are: a, b");
    BOOST_TEST(refusal("s://u:p@h?c=1") == "the URL has a parameter that is not known: c; those that are: a, b");
    BOOST_TEST(refusal("s://h?sec%20ret=1") == "the URL has a parameter that is not known; those that are: a, b");
    BOOST_TEST(refusal(("s://h?" + std::string(41, 'x') + "=1").c_str()).find("xx") == std::string::npos);
    for (const auto* text :
        {"s://u:p?a=x@h", "s://u:p?secret=1&a=x@h", "s://u:p?secret=x@h", "s://u:p?secret=x@h?a=1", "s://u@h?secret=@"})
        BOOST_TEST(refusal(text).starts_with("the URL has an '@' behind its first '?'"), text);
    BOOST_TEST(refusal("s://h?secret").starts_with("the URL has a parameter without a value"));
    BOOST_TEST(refusal("s://h#secret").starts_with("the URL has a fragment"));
    BOOST_TEST(refusal("s://u:p#secret@h").starts_with("the URL has a fragment"));
    BOOST_TEST(refusal("s://h") == "");
    BOOST_TEST(refusal("s://h?") == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
