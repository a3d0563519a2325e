// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/logging_observer.hpp>

#include "util/option_errors.hpp"
#include "util/text_escaping.hpp"

#include <boost/asio/error.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <ostream>
#include <source_location>
#include <string>
#include <utility>

namespace colock::inline v0 {

namespace {

/// Returns the time as ISO 8601 in UTC, with milliseconds.
std::string iso_time(std::chrono::system_clock::time_point time)
{
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
    char text[64];
    const int size = std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
        static_cast<int>(date.year()), static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
        static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
        static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
    return {text, static_cast<std::size_t>(size)};
}

/// Returns the duration in milliseconds, with three decimals. Does not depend on the locale.
std::string in_milliseconds(std::chrono::nanoseconds span)
{
    const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(abs(span)).count();
    const std::string decimals = std::to_string(microseconds % 1000);
    return (span < std::chrono::microseconds(0) ? "-" : "") + std::to_string(microseconds / 1000) + '.' +
           std::string(3 - decimals.size(), '0') + decimals;
}

/// Returns "FILE:LINE".
std::string file_and_line(const std::source_location& place)
{
    return place.file_name() + (':' + std::to_string(place.line()));
}

/// One line of the log, to which fields are added in their order.
class log_line
{
public:
    log_line(log_format format, log_level level, std::string_view event) : format_(format)
    {
        const std::string time = iso_time(std::chrono::system_clock::now());
        if (format_ == log_format::json)
            text_ = R"({"time":")" + time + R"(","level":")" + to_string(level) + R"(","event":")";
        else
            text_ = time + ' ' + to_string(level) + ' ';
        text_ += event;
        if (format_ == log_format::json)
            text_ += '"';
    }

    log_line& add(std::string_view name, std::string_view value)
    {
        return add_raw(name,
            format_ == log_format::json ? detail::json_string(value) : detail::quoted(value, std::string_view::npos));
    }
    log_line& add(std::string_view name, std::chrono::nanoseconds span) { return add_raw(name, in_milliseconds(span)); }
    log_line& add(std::string_view name, std::uint64_t number) { return add_raw(name, std::to_string(number)); }
    log_line& add(const error_code& error) { return add("code", error.to_string()).add("error", error.message()); }
    log_line& add_flag(std::string_view name, bool value) { return add_raw(name, value ? "true" : "false"); }

    [[nodiscard]] std::string finish() &&
    {
        if (format_ == log_format::json)
            text_ += '}';
        return std::move(text_);
    }

private:
    log_line& add_raw(std::string_view name, std::string_view value)
    {
        if (format_ == log_format::json)
            text_.append(",\"").append(name).append("\":");
        else
            text_.append(" ").append(name).append("=");
        text_ += value;
        return *this;
    }

    log_format format_;
    std::string text_;
};

log_level level_of_failure(const error_code& error) noexcept
{
    // A busy lock is an ordinary result, like a grant.
    if (error == boost::asio::error::operation_aborted || error == errc::retry_exhausted)
        return log_level::debug;
    return error == errc::shutting_down ? log_level::info : log_level::warning;
}

log_level level_of_loss(lost_reason reason) noexcept
{
    return reason == lost_reason::shutting_down ? log_level::info : log_level::error;
}

logging_observer::sink sink_of(std::ostream& to)
{
    return [&to, mutex = std::make_shared<std::mutex>()](log_level, std::string_view line) {
        const std::lock_guard guard(*mutex);
        to << line << '\n' << std::flush;
    };
}

} // namespace

const char* to_string(log_level level) noexcept
{
    switch (level) {
    case log_level::debug:
        return "debug";
    case log_level::info:
        return "info";
    case log_level::warning:
        return "warning";
    case log_level::error:
        return "error";
    }
    return "unknown";
}

logging_observer::logging_observer(sink to, logging_options options) : sink_(std::move(to)), options_(options)
{
    if (!sink_)
        detail::refuse_options({}, "the sink of the logging_observer is empty; give a function");
}

logging_observer::logging_observer(std::ostream& to, logging_options options) : logging_observer(sink_of(to), options)
{
}

template <class Fill>
void logging_observer::write(log_level level, std::string_view event, Fill fill) const noexcept
{
    if (level < options_.level)
        return;
    try {
        log_line line(options_.format, level, event);
        fill(line);
        sink_(level, std::move(line).finish());
    } catch (...) { // NOLINT(bugprone-empty-catch): documented
    }
}

void logging_observer::ready(std::string_view backend) noexcept
{
    write(log_level::info, "ready", [&](log_line& line) { line.add("backend", backend); });
}

void logging_observer::unreachable(
    std::string_view backend, const error_code& error, std::string_view address, std::string_view detail) noexcept
{
    write(log_level::warning, "unreachable", [&](log_line& line) {
        line.add("backend", backend).add("address", address).add(error);
        if (!detail.empty())
            line.add("detail", detail);
    });
}

void logging_observer::suspended(std::string_view backend, const error_code& error) noexcept
{
    write(log_level::warning, "suspended", [&](log_line& line) { line.add("backend", backend).add(error); });
}

void logging_observer::reconnected(std::string_view backend) noexcept
{
    write(log_level::info, "reconnected", [&](log_line& line) { line.add("backend", backend); });
}

void logging_observer::warning(std::string_view backend, std::string_view message) noexcept
{
    write(log_level::warning, "warning", [&](log_line& line) { line.add("backend", backend).add("message", message); });
}

void logging_observer::waiting(std::string_view key) noexcept
{
    write(log_level::debug, "waiting", [&](log_line& line) { line.add("key", key); });
}

void logging_observer::possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
    const std::source_location& acquired_at, const std::source_location& waiting_at) noexcept
{
    write(log_level::warning, "possible_deadlock", [&](log_line& line) {
        line.add("key", key).add("held_ms", held_for);
        line.add("acquired_at", file_and_line(acquired_at)).add("acquired_in", acquired_at.function_name());
        line.add("waiting_at", file_and_line(waiting_at)).add("waiting_in", waiting_at.function_name());
    });
}

void logging_observer::granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept
{
    write(log_level::debug, "granted",
        [&](log_line& line) { line.add("key", key).add("fence", fence).add("waited_ms", waited); });
}

void logging_observer::not_granted(
    std::string_view key, const error_code& error, std::chrono::nanoseconds waited) noexcept
{
    write(level_of_failure(error), "not_granted",
        [&](log_line& line) { line.add("key", key).add("waited_ms", waited).add(error); });
}

void logging_observer::renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept
{
    write(log_level::debug, "renewed", [&](log_line& line) { line.add("key", key).add("valid_ms", valid_for); });
}

void logging_observer::at_risk(std::string_view key, const error_code& error) noexcept
{
    write(log_level::warning, "at_risk", [&](log_line& line) { line.add("key", key).add(error); });
}

void logging_observer::lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds held_for) noexcept
{
    write(level_of_loss(reason), "lost", [&](log_line& line) {
        line.add("key", key).add("reason", std::string_view(to_string(reason))).add("held_ms", held_for);
    });
}

void logging_observer::released(std::string_view key, std::chrono::nanoseconds held_for) noexcept
{
    write(log_level::debug, "released", [&](log_line& line) { line.add("key", key).add("held_ms", held_for); });
}

void logging_observer::elected(std::string_view key, std::uint64_t term) noexcept
{
    write(log_level::info, "elected", [&](log_line& line) { line.add("key", key).add("term", term); });
}

void logging_observer::resigned(std::string_view key, std::uint64_t term) noexcept
{
    write(log_level::info, "resigned", [&](log_line& line) { line.add("key", key).add("term", term); });
}

void logging_observer::deposed(std::string_view key, std::uint64_t term, lost_reason reason) noexcept
{
    write(log_level::error, "deposed", [&](log_line& line) {
        line.add("key", key).add("term", term).add("reason", std::string_view(to_string(reason)));
    });
}

void logging_observer::settled(std::string_view key, bool proven) noexcept
{
    write(proven ? log_level::debug : log_level::warning, "settled",
        [&](log_line& line) { line.add("key", key).add_flag("proven", proven); });
}

} // namespace colock::inline v0
