// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/locker.hpp>
#include <colock/observer.hpp>
#include <colock/spi/adapter.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0 {

namespace detail {
class counter_store;
} // namespace detail

/// Options of metrics.
struct metrics_options
{
    /// The prefix of a key ends before the first delimiter. A key without a delimiter is its own prefix.
    char delimiter = ':';
    /// Maximum number of prefixes that are counted separately, in the order of their first event. All other prefixes
    /// are counted together as `other`, and so are prefixes that are empty, longer than 128 bytes, invalid UTF-8, or
    /// contain control characters. Range: 0 to 10,000.
    std::size_t max_prefixes = 100;
    /// Upper bounds of the buckets of `colock_wait_seconds`, without the last bucket, which has no bound. At least one,
    /// at most 100; positive and ascending.
    std::vector<std::chrono::nanoseconds> wait_buckets{std::chrono::milliseconds(1), std::chrono::milliseconds(5),
        std::chrono::milliseconds(10), std::chrono::milliseconds(50), std::chrono::milliseconds(100),
        std::chrono::milliseconds(500), std::chrono::seconds(1), std::chrono::seconds(5), std::chrono::seconds(10),
        std::chrono::seconds(30), std::chrono::seconds(60)};
    /// The same for `colock_hold_seconds`.
    std::vector<std::chrono::nanoseconds> hold_buckets{std::chrono::milliseconds(1), std::chrono::milliseconds(10),
        std::chrono::milliseconds(100), std::chrono::milliseconds(500), std::chrono::seconds(1),
        std::chrono::seconds(5), std::chrono::seconds(10), std::chrono::seconds(30), std::chrono::minutes(1),
        std::chrono::minutes(5), std::chrono::hours(1)};
};

/// An observer that counts events, and writes the counters as text for Prometheus. Give it to
/// `locker_options::observer`; an observer_list combines it with other observers. It can be shared by any number of
/// lockers. All functions are thread-safe.
///
/// Counters with the label `prefix`, the part of the key before the first delimiter:
/// - `colock_acquires_total`: acquires that ended. Label `outcome`: `granted`, `exhausted` (the retry policy ended, or
///   a `try_acquire` found the lock busy), `cancelled`, `shut_down` or `failed`. All outcomes except `granted` are the
///   reasons of observer::not_granted.
/// - `colock_waits_total`: acquires that had to wait.
/// - `colock_releases_total`: locks that were released or detached. If the first attempt of a release fails, it is
///   finished in the background, and counted by `colock_cleanups_total` instead.
/// - `colock_losses_total`: locks that were lost. Label `reason`, see lost_reason.
/// - `colock_renewals_total`: leases that were renewed.
/// - `colock_at_risk_total`: calls of observer::at_risk.
/// - `colock_elected_total`, `colock_resigned_total`, `colock_deposed_total`: calls of observer::elected, `resigned`
/// and
///   `deposed`. The difference of the first and the sum of the others is the number of current leaders.
/// - `colock_cleanups_total`: calls of observer::settled. Label `proven`: `true` or `false`.
///
/// Histograms with the label `prefix`:
/// - `colock_wait_seconds`: time from the call of an acquire to its grant.
/// - `colock_hold_seconds`: time from a grant to the release or the loss, of the locks that `colock_releases_total` and
///   `colock_losses_total` count.
///
/// Counters with the label `backend`, the name of the adapter: `colock_reconnects_total`, `colock_suspensions_total`,
/// `colock_unreachable_total`, `colock_warnings_total`. They count `reconnected`, `suspended`, `unreachable` and
/// `warning`. Give all lockers of an adapter the same observer object, even if it is an observer_list: with several
/// lists that contain these metrics, each event is counted several times.
class COLOCK_EXPORT metrics : public observer
{
public:
    /// \throws validation_error `invalid_options` if an option is outside of its range
    explicit metrics(metrics_options options = {});
    metrics(const metrics&) = delete;
    metrics& operator=(const metrics&) = delete;
    ~metrics() override;

    /// Value of the HTTP header `Content-Type` for `text()`.
    static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

    /// Returns the metrics in the text format of Prometheus, version 0.0.4. All counters are read at the same moment.
    /// The size is limited by the number of prefixes and buckets.
    /// \param lockers the gauges `colock_held`, `colock_waiting` and `colock_settling` are the sums over these lockers;
    ///     see locker_stats. These numbers cannot be derived from events.
    /// \param backends for each name of an adapter, the gauge `colock_backend_up` is 0 if one of these adapters cannot
    ///     be reached at present, and otherwise 1. The gauge is also 0 while an adapter connects. A null pointer is
    ///     ignored.
    [[nodiscard]] std::string text(
        const std::vector<locker>& lockers = {}, const std::vector<std::shared_ptr<adapter>>& backends = {}) const;

    void ready(std::string_view backend) noexcept override;
    void unreachable(std::string_view backend, const error_code& error, std::string_view address,
        std::string_view detail) noexcept override;
    void suspended(std::string_view backend, const error_code& error) noexcept override;
    void reconnected(std::string_view backend) noexcept override;
    void warning(std::string_view backend, std::string_view message) noexcept override;
    void waiting(std::string_view key) noexcept override;
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
    std::unique_ptr<detail::counter_store> store_;
};

} // namespace colock::inline v0
