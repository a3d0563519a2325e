// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/metrics.hpp>
#include <colock/stats.hpp>

#include "metrics/counters.hpp"
#include "metrics/text_format.hpp"

#include <boost/asio/error.hpp>

#include <map>
#include <utility>

namespace colock::inline v0 {

using namespace detail;

namespace {

acquire_end end_of(const error_code& error) noexcept
{
    if (error == errc::retry_exhausted)
        return acquire_end::exhausted;
    if (error == boost::asio::error::operation_aborted)
        return acquire_end::cancelled;
    return error == errc::shutting_down ? acquire_end::shut_down : acquire_end::failed;
}

std::uint64_t& acquires_of(key_counters& counters, acquire_end end) noexcept
{
    return counters.acquires[static_cast<std::size_t>(end)];
}

/// Writes the counters of a snapshot.
class snapshot_writer
{
public:
    snapshot_writer(text_writer& to, const metrics_snapshot& counted) : to_(to), counted_(counted) {}

    void write_acquires()
    {
        to_.begin_family("colock_acquires_total", "counter", "Acquires that ended.");
        for (const auto& [prefix, counters] : counted_.prefixes) {
            for (std::size_t n = 0; n < acquire_end_names.size(); ++n)
                to_.add({{"prefix", prefix}, {"outcome", acquire_end_names[n]}}, counters.acquires[n]);
        }
    }

    void write_losses()
    {
        to_.begin_family("colock_losses_total", "counter", "Locks that were lost.");
        for (const auto& [prefix, counters] : counted_.prefixes) {
            for (std::size_t n = 0; n < counters.losses.size(); ++n) {
                const auto reason = static_cast<lost_reason>(n);
                if (reason != lost_reason::released) // not a loss
                    to_.add({{"prefix", prefix}, {"reason", to_string(reason)}}, counters.losses[n]);
            }
        }
    }

    void write_cleanups()
    {
        to_.begin_family("colock_cleanups_total", "counter",
            "Lost locks and abandoned acquires that hold nothing any more; without proof, because their ttl has "
            "passed.");
        for (const auto& [prefix, counters] : counted_.prefixes) {
            to_.add({{"prefix", prefix}, {"proven", "true"}}, counters.proven_cleanups);
            to_.add({{"prefix", prefix}, {"proven", "false"}}, counters.unproven_cleanups);
        }
    }

    void write_of_prefix(std::string_view name, std::string_view help, std::uint64_t key_counters::* counter)
    {
        to_.begin_family(name, "counter", help);
        for (const auto& [prefix, counters] : counted_.prefixes)
            to_.add({{"prefix", prefix}}, counters.*counter);
    }

    void write_of_backend(std::string_view name, std::string_view help, std::uint64_t backend_counters::* counter)
    {
        to_.begin_family(name, "counter", help);
        for (const auto& [backend, counters] : counted_.backends)
            to_.add({{"backend", backend}}, counters.*counter);
    }

    void write_histogram(std::string_view name, std::string_view help,
        const std::vector<std::chrono::nanoseconds>& bounds, duration_histogram key_counters::* counter)
    {
        to_.begin_family(name, "histogram", help);
        for (const auto& [prefix, counters] : counted_.prefixes) {
            const duration_histogram& times = counters.*counter;
            std::uint64_t count = 0;
            for (std::size_t n = 0; n < times.counts.size(); ++n) {
                count += times.counts[n];
                const std::string bound = n < bounds.size() ? in_seconds(bounds[n]) : "+Inf";
                to_.add_part("_bucket", {{"prefix", prefix}, {"le", bound}}, std::to_string(count));
            }
            to_.add_part("_sum", {{"prefix", prefix}}, in_seconds(times.sum_in_seconds));
            to_.add_part("_count", {{"prefix", prefix}}, std::to_string(count));
        }
    }

private:
    text_writer& to_;
    const metrics_snapshot& counted_;
};

void write_gauge(text_writer& to, std::string_view name, std::string_view help, std::uint64_t value)
{
    to.begin_family(name, "gauge", help);
    to.add({}, value);
}

void write_locks(text_writer& to, const std::vector<locker>& lockers)
{
    if (lockers.empty())
        return;
    locker_stats sum;
    for (const auto& each : lockers) {
        const locker_stats now = each.stats();
        sum.held += now.held;
        sum.waiting += now.waiting;
        sum.settling += now.settling;
    }
    write_gauge(to, "colock_held", "Locks that are held.", sum.held);
    write_gauge(to, "colock_waiting", "Acquires that wait.", sum.waiting);
    write_gauge(to, "colock_settling", "Releases and cleanups that are in progress.", sum.settling);
}

void write_backends(text_writer& to, const std::vector<std::shared_ptr<adapter>>& backends)
{
    std::map<std::string_view, bool> is_up;
    for (const auto& each : backends) {
        if (each) {
            bool& all = is_up.try_emplace(each->traits().name, true).first->second;
            all = all && !each->connection_failure();
        }
    }
    if (is_up.empty())
        return;
    to.begin_family("colock_backend_up", "gauge", "Whether the backend can be reached.");
    for (const auto& [backend, up] : is_up)
        to.add({{"backend", backend}}, up ? 1U : 0U);
}

} // namespace

metrics::metrics(metrics_options options) : store_(std::make_unique<counter_store>(std::move(options))) {}
metrics::~metrics() = default;

std::string metrics::text(
    const std::vector<locker>& lockers, const std::vector<std::shared_ptr<adapter>>& backends) const
{
    const metrics_snapshot counted = store_->snapshot();
    text_writer to;
    snapshot_writer writer(to, counted);
    writer.write_acquires();
    writer.write_of_prefix("colock_waits_total", "Acquires that had to wait.", &key_counters::waits);
    writer.write_histogram("colock_wait_seconds", "Time from the call of an acquire to its grant.",
        store_->options().wait_buckets, &key_counters::wait_times);
    writer.write_histogram("colock_hold_seconds", "Time from a grant to the release or the loss.",
        store_->options().hold_buckets, &key_counters::hold_times);
    writer.write_of_prefix("colock_releases_total", "Locks that were released or detached.", &key_counters::releases);
    writer.write_losses();
    writer.write_of_prefix("colock_renewals_total", "Leases that were renewed.", &key_counters::renewals);
    writer.write_of_prefix("colock_at_risk_total",
        "Failed renewals, and held locks whose backend could not be reached.", &key_counters::risks);
    writer.write_of_prefix("colock_elected_total", "Terms in which a process began to lead.", &key_counters::elections);
    writer.write_of_prefix("colock_resigned_total", "Terms that the leader gave up.", &key_counters::resignations);
    writer.write_of_prefix("colock_deposed_total", "Terms that the leader lost.", &key_counters::depositions);
    writer.write_cleanups();
    writer.write_of_backend(
        "colock_reconnects_total", "Lost connections that were made again.", &backend_counters::reconnects);
    writer.write_of_backend("colock_suspensions_total", "Lost connections.", &backend_counters::suspensions);
    writer.write_of_backend("colock_unreachable_total",
        "Causes for which a connection could not be made, once for each outage.", &backend_counters::unreachable);
    writer.write_of_backend("colock_warnings_total", "Warnings for the operator.", &backend_counters::warnings);
    write_locks(to, lockers);
    write_backends(to, backends);
    return std::move(to).finish();
}

void metrics::ready(std::string_view backend) noexcept
{
    // From now on, the counters of the backend are written, so that their first increment is visible.
    store_->change_backend(backend, [](backend_counters&) {});
}

void metrics::unreachable(std::string_view backend, const error_code&, std::string_view, std::string_view) noexcept
{
    store_->change_backend(backend, [](backend_counters& counters) { ++counters.unreachable; });
}

void metrics::suspended(std::string_view backend, const error_code&) noexcept
{
    store_->change_backend(backend, [](backend_counters& counters) { ++counters.suspensions; });
}

void metrics::reconnected(std::string_view backend) noexcept
{
    store_->change_backend(backend, [](backend_counters& counters) { ++counters.reconnects; });
}

void metrics::warning(std::string_view backend, std::string_view) noexcept
{
    store_->change_backend(backend, [](backend_counters& counters) { ++counters.warnings; });
}

void metrics::waiting(std::string_view key) noexcept
{
    store_->change_key(key, [](key_counters& counters) { ++counters.waits; });
}

void metrics::granted(std::string_view key, std::uint64_t, std::chrono::nanoseconds waited) noexcept
{
    store_->change_key(key, [&](key_counters& counters) {
        ++acquires_of(counters, acquire_end::granted);
        counters.wait_times.add(waited, store_->options().wait_buckets);
    });
}

void metrics::not_granted(std::string_view key, const error_code& error, std::chrono::nanoseconds) noexcept
{
    store_->change_key(key, [&](key_counters& counters) { ++acquires_of(counters, end_of(error)); });
}

void metrics::renewed(std::string_view key, std::chrono::nanoseconds) noexcept
{
    store_->change_key(key, [](key_counters& counters) { ++counters.renewals; });
}

void metrics::at_risk(std::string_view key, const error_code&) noexcept
{
    store_->change_key(key, [](key_counters& counters) { ++counters.risks; });
}

void metrics::lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds held_for) noexcept
{
    store_->change_key(key, [&](key_counters& counters) {
        ++counters.losses[static_cast<std::size_t>(reason)];
        counters.hold_times.add(held_for, store_->options().hold_buckets);
    });
}

void metrics::released(std::string_view key, std::chrono::nanoseconds held_for) noexcept
{
    store_->change_key(key, [&](key_counters& counters) {
        ++counters.releases;
        counters.hold_times.add(held_for, store_->options().hold_buckets);
    });
}

void metrics::elected(std::string_view key, std::uint64_t) noexcept
{
    store_->change_key(key, [](key_counters& counters) { ++counters.elections; });
}

void metrics::resigned(std::string_view key, std::uint64_t) noexcept
{
    store_->change_key(key, [](key_counters& counters) { ++counters.resignations; });
}

void metrics::deposed(std::string_view key, std::uint64_t, lost_reason) noexcept
{
    store_->change_key(key, [](key_counters& counters) { ++counters.depositions; });
}

void metrics::settled(std::string_view key, bool proven) noexcept
{
    store_->change_key(
        key, [&](key_counters& counters) { ++(proven ? counters.proven_cleanups : counters.unproven_cleanups); });
}

} // namespace colock::inline v0
