// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/observer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <source_location>
#include <string_view>

namespace colock::inline v0 {

/// Severity of a line in the log, in ascending order.
enum class log_level : unsigned char
{
    /// The normal life of a lock.
    debug,
    /// Changes of state that an operator may want to know.
    info,
    /// Problems that may end by themselves.
    warning,
    /// Lost locks.
    error,
};

/// Returns a word for each level: "debug", "info", "warning", "error".
COLOCK_EXPORT [[nodiscard]] const char* to_string(log_level level) noexcept;

/// Selects how a line of the log is written. The names and values of the fields are the same in both formats.
enum class log_format : unsigned char
{
    /// `2026-11-27T13:42:19.123Z error lost key="a:b" ...`. Control characters and bytes that are not valid UTF-8 are
    /// written as `\xNN`.
    text,
    /// `{"time":"2026-11-27T13:42:19.123Z","level":"error","event":"lost","key":"a:b",...}`. Bytes that are not valid
    /// UTF-8 are replaced by U+FFFD.
    json,
};

/// Options of a logging_observer.
struct logging_options
{
    /// Events below this level are not written, and cost nothing but the call.
    log_level level = log_level::info;
    /// Format of the lines.
    log_format format = log_format::text;
};

/// An observer that writes one line for each event. Give it to `locker_options::observer`; an observer_list combines it
/// with other observers. It can be shared by any number of lockers.
///
/// - debug: `waiting`, `granted`, `renewed`, `released`, `settled`; `not_granted` because the lock was busy or
///   because of a cancellation
/// - info: `ready`, `reconnected`, `elected`, `resigned`; `not_granted` of an acquire that was shut down; `lost`
/// because of a shutdown
/// - warning: `suspended`, `unreachable`, `warning`, `at_risk`, `possible_deadlock`; each other `not_granted`;
///   `settled` without proof
/// - error: each other `lost`; `deposed`
///
/// Times are those of the system clock, in UTC and with milliseconds. Durations are in milliseconds (`waited_ms`,
/// `held_ms`, `valid_ms`). Lines contain no tokens and no credentials.
///
/// The functions are thread-safe if the sink is. They never throw: an event whose line cannot be written, for example
/// because the sink throws, is dropped. They take as long as the sink.
class COLOCK_EXPORT logging_observer : public observer
{
public:
    /// Receives one line, without a line break. The line is valid only during the call. A sink must be thread-safe,
    /// because it is called directly from the threads on which events happen. No mutex is held meanwhile.
    using sink = std::function<void(log_level level, std::string_view line)>;

    /// \throws validation_error `invalid_options` if the sink is empty
    explicit logging_observer(sink to, logging_options options = {});
    /// Writes to a stream and flushes it after each line. Lines are not mixed with each other, but they may be mixed
    /// with what others write to the stream. The stream must outlive this object.
    explicit logging_observer(std::ostream& to, logging_options options = {});

    void ready(std::string_view backend) noexcept override;
    void unreachable(std::string_view backend, const error_code& error, std::string_view address,
        std::string_view detail) noexcept override;
    void suspended(std::string_view backend, const error_code& error) noexcept override;
    void reconnected(std::string_view backend) noexcept override;
    void warning(std::string_view backend, std::string_view message) noexcept override;
    void waiting(std::string_view key) noexcept override;
    void possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
        const std::source_location& acquired_at, const std::source_location& waiting_at) noexcept override;
    void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept override;
    void not_granted(std::string_view key, const error_code& error, std::chrono::nanoseconds waited) noexcept override;
    void renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept override;
    void at_risk(std::string_view key, const error_code& error) noexcept override;
    void lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds held_for) noexcept override;
    void released(std::string_view key, std::chrono::nanoseconds held_for) noexcept override;
    void elected(std::string_view key, std::uint64_t term) noexcept override;
    void resigned(std::string_view key, std::uint64_t term) noexcept override;
    void deposed(std::string_view key, std::uint64_t term, lost_reason reason) noexcept override;
    void settled(std::string_view key, bool proven) noexcept override;

private:
    template <class Fill>
    void write(log_level level, std::string_view event, Fill fill) const noexcept;

    sink sink_;
    logging_options options_;
};

} // namespace colock::inline v0
