// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The logging_observer, the observer_list, and the escaping of texts.
#include "support/print.hpp"

#include <colock/logging_observer.hpp>
#include <colock/observer_list.hpp>

#include "util/text_escaping.hpp"

#include <boost/asio/error.hpp>
// Boost.JSON without its library.
#include <boost/json/src.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <regex>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace colock;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(logging)

namespace {

struct logged
{
    log_level level;
    std::string line;
};

/// A logging_observer whose lines are stored.
struct log_fixture
{
    std::vector<logged> lines;

    [[nodiscard]] logging_observer make(logging_options options)
    {
        return logging_observer(
            [this](log_level level, std::string_view line) { lines.push_back({level, std::string(line)}); }, options);
    }
    /// Returns the only line, without its time, and forgets it.
    [[nodiscard]] std::string take_text()
    {
        BOOST_TEST_REQUIRE(lines.size() == 1U);
        const std::string line = std::exchange(lines, {}).front().line;
        static const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )");
        BOOST_TEST(std::regex_search(line, time, std::regex_constants::match_continuous));
        return line.substr(line.find(' ') + 1);
    }
    [[nodiscard]] boost::json::object take_json()
    {
        BOOST_TEST_REQUIRE(lines.size() == 1U);
        return boost::json::parse(std::exchange(lines, {}).front().line).as_object();
    }
};

/// Stores what is written, and lets other threads run before each part of a line. Thread-safe, unlike a std::stringbuf.
class slow_buffer : public std::streambuf
{
public:
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::streamsize xsputn(const char* from, std::streamsize size) override
    {
        std::this_thread::sleep_for(10us);
        const std::lock_guard guard(mutex_);
        text_.append(from, static_cast<std::size_t>(size));
        return size;
    }
    int_type overflow(int_type unit) override
    {
        const char one = traits_type::to_char_type(unit);
        xsputn(&one, 1);
        return unit;
    }

    std::mutex mutex_;
    std::string text_;
};

/// Calls each function of an observer once, in the order of the header.
void report_everything(observer& to)
{
    to.ready("redis");
    to.unreachable("redis", errc::unavailable, "127.0.0.1:1", "it is loading");
    to.suspended("redis", boost::asio::error::connection_reset);
    to.reconnected("redis");
    to.warning("redis", "no right to use \"CONFIG\"");
    to.waiting("a:b");
    to.possible_deadlock("a:b", 3s, std::source_location::current(), std::source_location::current());
    to.granted("a:b", 18'446'744'073'709'551'615U, 12'345'678ns);
    to.not_granted("a:b", errc::retry_exhausted, 2s);
    to.renewed("a:b", 30s);
    to.at_risk("a:b", errc::outcome_unknown);
    to.lost("a:b", lost_reason::expired, 1ms);
    to.released("a:b", 5us);
    to.elected("a:b", 7);
    to.resigned("a:b", 7);
    to.deposed("a:b", 7, lost_reason::broken);
    to.settled("a:b", true);
}

} // namespace

BOOST_FIXTURE_TEST_CASE(text_line_has_time_level_event_and_fields, log_fixture)
{
    auto log = make({.level = log_level::debug});
    log.granted("a:b", 7, 12'345'678ns);
    BOOST_TEST(take_text() == "debug granted key=\"a:b\" fence=7 waited_ms=12.345");
    log.lost("a:b", lost_reason::expired, 60s);
    BOOST_TEST(take_text() == "error lost key=\"a:b\" reason=\"expired\" held_ms=60000.000");
    log.settled("a:b", false);
    BOOST_TEST(take_text() == "warning settled key=\"a:b\" proven=false");
    log.released("a:b", 5us);
    BOOST_TEST(take_text() == "debug released key=\"a:b\" held_ms=0.005");
    log.elected("a:b", 7);
    BOOST_TEST(take_text() == "info elected key=\"a:b\" term=7");
    log.resigned("a:b", 7);
    BOOST_TEST(take_text() == "info resigned key=\"a:b\" term=7");
    log.deposed("a:b", 7, lost_reason::broken);
    BOOST_TEST(take_text() == "error deposed key=\"a:b\" term=7 reason=\"broken\"");
    const auto acquired_at = std::source_location::current();
    const auto waiting_at = std::source_location::current();
    log.possible_deadlock("a:b", 1500ms, acquired_at, waiting_at);
    const std::string file = acquired_at.file_name(), function = acquired_at.function_name();
    BOOST_TEST(take_text() == "warning possible_deadlock key=\"a:b\" held_ms=1500.000 acquired_at=\"" + file + ':' +
                                  std::to_string(acquired_at.line()) + "\" acquired_in=\"" + function +
                                  "\" waiting_at=\"" + file + ':' + std::to_string(waiting_at.line()) +
                                  "\" waiting_in=\"" + function + "\"");
    const std::string unreachable = "warning unreachable backend=\"redis\" address=\"h:1\" code=\"colock:5\" error=\"" +
                                    error_code(errc::unavailable).message() + '"';
    log.unreachable("redis", errc::unavailable, "h:1", "it is loading");
    BOOST_TEST(take_text() == unreachable + " detail=\"it is loading\"");
    log.unreachable("redis", errc::unavailable, "h:1", {});
    BOOST_TEST(take_text() == unreachable);
    log.not_granted("a:b", errc::invalid_ttl, 0ns);
    BOOST_TEST(take_text() == "warning not_granted key=\"a:b\" waited_ms=0.000 code=\"colock:7\" error=\"" +
                                  error_code(errc::invalid_ttl).message() + "\"");
}

BOOST_FIXTURE_TEST_CASE(json_line_is_an_object_with_the_same_fields, log_fixture)
{
    auto log = make({.level = log_level::debug, .format = log_format::json});
    log.granted("a:b", 18'446'744'073'709'551'615U, 12'345'678ns);
    auto line = take_json();
    BOOST_TEST(line["level"].as_string() == "debug");
    BOOST_TEST(line["event"].as_string() == "granted");
    BOOST_TEST(line["key"].as_string() == "a:b");
    BOOST_TEST(line["fence"].as_uint64() == 18'446'744'073'709'551'615U);
    BOOST_TEST(line["waited_ms"].as_double() == 12.345);
    BOOST_TEST(line["time"].as_string().size() == std::string_view("2026-11-27T13:42:19.123Z").size());
    log.settled("a:b", false);
    BOOST_TEST(!take_json()["proven"].as_bool());
    log.at_risk("a:b", errc::unavailable);
    line = take_json();
    BOOST_TEST(line["code"].as_string() == "colock:5");
    BOOST_TEST(line["error"].as_string() == error_code(errc::unavailable).message());
}

BOOST_FIXTURE_TEST_CASE(every_event_is_one_line_in_both_formats, log_fixture)
{
    constexpr std::string_view events[] = {"ready", "unreachable", "suspended", "reconnected", "warning", "waiting",
        "possible_deadlock", "granted", "not_granted", "renewed", "at_risk", "lost", "released", "elected", "resigned",
        "deposed", "settled"};
    for (const auto format : {log_format::text, log_format::json}) {
        auto log = make({.level = log_level::debug, .format = format});
        report_everything(log);
        BOOST_TEST_REQUIRE(lines.size() == std::size(events));
        for (std::size_t n = 0; n < lines.size(); ++n) {
            BOOST_TEST_CONTEXT(lines[n].line)
            {
                BOOST_TEST(lines[n].line.find('\n') == std::string::npos);
                if (format == log_format::json) {
                    const auto parsed = boost::json::parse(lines[n].line).as_object();
                    BOOST_TEST(parsed.at("event").as_string() == events[n]);
                    BOOST_TEST(parsed.at("level").as_string() == to_string(lines[n].level));
                } else {
                    const std::string start = std::string(to_string(lines[n].level)) + ' ' + std::string(events[n]);
                    BOOST_TEST(lines[n].line.substr(25, start.size()) == start);
                }
            }
        }
        lines.clear();
    }
}

BOOST_FIXTURE_TEST_CASE(unusual_keys_are_escaped, log_fixture)
{
    constexpr std::string_view key = "a\"b\\c\nd\xff\xc3\xa9";
    auto text = make({.level = log_level::debug});
    text.waiting(key);
    BOOST_TEST(take_text() == "debug waiting key=\"a\\\"b\\\\c\\x0ad\\xff\xc3\xa9\"");
    auto json = make({.level = log_level::debug, .format = log_format::json});
    json.waiting(key);
    BOOST_TEST(take_json()["key"].as_string() == "a\"b\\c\nd\xef\xbf\xbd\xc3\xa9");
    const std::string long_key(1000, 'k');
    text.waiting(long_key);
    BOOST_TEST(take_text() == "debug waiting key=\"" + long_key + "\"");
}

BOOST_FIXTURE_TEST_CASE(negative_duration_is_written, log_fixture)
{
    auto log = make({.level = log_level::debug});
    log.renewed("k", -1500us);
    BOOST_TEST(take_text() == "debug renewed key=\"k\" valid_ms=-1.500");
}

BOOST_FIXTURE_TEST_CASE(level_depends_on_event_and_cause, log_fixture)
{
    const auto level_of = [this](const auto& report) {
        auto log = make({.level = log_level::debug});
        report(log);
        BOOST_TEST_REQUIRE(lines.size() == 1U);
        return std::exchange(lines, {}).front().level;
    };
    const auto level_of_end = [&](const error_code& why) {
        return level_of([&](observer& to) { to.not_granted("k", why, 0ns); });
    };
    const auto level_of_loss = [&](lost_reason why) { return level_of([&](observer& to) { to.lost("k", why, 0ns); }); };
    BOOST_TEST((level_of_end(boost::asio::error::operation_aborted) == log_level::debug));
    BOOST_TEST((level_of_end(errc::retry_exhausted) == log_level::debug));
    BOOST_TEST((level_of_end(errc::shutting_down) == log_level::info));
    BOOST_TEST((level_of_end(errc::unavailable) == log_level::warning));
    BOOST_TEST((level_of_loss(lost_reason::shutting_down) == log_level::info));
    BOOST_TEST((level_of_loss(lost_reason::session) == log_level::error));
    BOOST_TEST((level_of([](observer& to) { to.settled("k", true); }) == log_level::debug));
    BOOST_TEST((level_of([](observer& to) { to.settled("k", false); }) == log_level::warning));
}

BOOST_FIXTURE_TEST_CASE(events_below_the_level_are_not_written, log_fixture)
{
    const auto count_at = [this](log_level level) {
        auto log = make({.level = level});
        report_everything(log);
        for (const auto& each : lines)
            BOOST_TEST((each.level >= level));
        return std::exchange(lines, {}).size();
    };
    BOOST_TEST(count_at(log_level::debug) == 17U);
    BOOST_TEST(count_at(log_level::info) == 11U);
    BOOST_TEST(count_at(log_level::warning) == 7U);
    BOOST_TEST(count_at(log_level::error) == 2U);
}

BOOST_AUTO_TEST_CASE(exception_of_the_sink_drops_the_line)
{
    int calls = 0;
    logging_observer log([&calls](log_level, std::string_view) {
        ++calls;
        throw std::runtime_error("disk full");
    });
    log.ready("redis");
    log.ready("redis");
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(lines_of_several_threads_are_not_mixed)
{
    slow_buffer out;
    std::ostream stream(&out);
    logging_observer log(stream, {.level = log_level::debug});
    constexpr int thread_count = 4;
    constexpr int event_count = 100;
    std::vector<std::thread> threads;
    for (int n = 0; n < thread_count; ++n) {
        threads.emplace_back([&log] {
            for (int i = 0; i < event_count; ++i)
                log.waiting("k");
        });
    }
    for (auto& each : threads)
        each.join();
    std::istringstream in(out.text());
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines)
        BOOST_TEST_REQUIRE(line.substr(std::min<std::size_t>(25, line.size())) == "debug waiting key=\"k\"");
    BOOST_TEST(lines == thread_count * event_count);
}

BOOST_AUTO_TEST_CASE(empty_sink_is_rejected)
{
    BOOST_CHECK_THROW(logging_observer{logging_observer::sink()}, validation_error);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(observer_lists)

BOOST_AUTO_TEST_CASE(every_event_is_forwarded_to_each_observer_in_order)
{
    std::vector<std::string> lines;
    const auto make = [&lines](std::string name) {
        return std::make_shared<logging_observer>(
            [&lines, name = std::move(name)](
                log_level, std::string_view line) { lines.push_back(name + std::string(line.substr(25))); },
            logging_options{.level = log_level::debug});
    };
    const auto direct = make("");
    logging::report_everything(*direct);
    const auto expected = std::exchange(lines, {});

    observer_list list(make("first "), make("second "));
    logging::report_everything(list);
    BOOST_TEST_REQUIRE(lines.size() == 2 * expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
        BOOST_TEST(lines[2 * n] == "first " + expected[n]);
        BOOST_TEST(lines[2 * n + 1] == "second " + expected[n]);
    }
}

BOOST_AUTO_TEST_CASE(null_observer_is_rejected)
{
    BOOST_CHECK_THROW(observer_list({nullptr}), validation_error);
    BOOST_CHECK_THROW(observer_list(std::shared_ptr<logging_observer>()), validation_error);
    BOOST_CHECK_NO_THROW(observer_list({}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(escaped_texts)

BOOST_AUTO_TEST_CASE(invalid_utf8_is_escaped)
{
    using detail::printable;
    // Overlong encodings, a surrogate, code points beyond the last one, and characters that are cut.
    for (const std::string_view text : {"\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"})
    {
        BOOST_TEST(printable(text).find_first_not_of("\\x0123456789abcdef") == std::string::npos);
        for (const char each : detail::json_string(text))
            BOOST_TEST(static_cast<unsigned char>(each) < 0x80U);
    }
    for (const std::string_view text :
        {"\xc2\xa0", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    {
        BOOST_TEST(printable(text) == text);
        BOOST_TEST(detail::json_string(text) == '"' + std::string(text) + '"');
    }
}

BOOST_AUTO_TEST_CASE(json_string_escapes_controls_quotes_and_backslashes)
{
    BOOST_TEST(detail::json_string("a\"b\\c") == R"("a\"b\\c")");
    BOOST_TEST(detail::json_string({"\0\n\x1f\x7f", 4}) == R"("\u0000\u000a\u001f\u007f")");
    // The control character U+009B starts a command of a terminal.
    BOOST_TEST(detail::json_string("\xc2\x9b") == R"("\u009b")");
}

BOOST_AUTO_TEST_SUITE_END()
