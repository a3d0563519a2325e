// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "workload.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bench {

/// Runs the selected parts. Returns a chart of the rates as multiples of Curator's rate. Returns nothing if the URL
/// does not name a single ZooKeeper server without a password.
[[nodiscard]] std::optional<chart> run_zookeeper(const options& settings, report& results);
constexpr std::string_view zookeeper_scheme = "zookeeper";

/// Creates and deletes the node of a pair, with the driver that colock uses and the same number in flight, but without
/// a lock.
[[nodiscard]] rate run_raw_nodes(const workload& load);

/// Returns the durations of single writes with the same driver, in milliseconds.
[[nodiscard]] std::vector<double> time_raw_writes(const workload& at, std::size_t count);

/// Measures the cost of locks and waiters for the server, by the server's own counters. The server must have no other
/// clients.
void measure_zookeeper_waiters(const workload& at, const options& settings, report& results);

/// Measures what thousands of waiters for one key cost the server, and how soon they are granted.
void measure_zookeeper_many_waiters(const workload& at, const options& settings, report& results);

/// Measures the number of round trips of a lock and of a hand-off.
void measure_zookeeper_round_trips(const workload& at, const options& settings, report& results);

/// Measures how long it takes to resume a session. The server must be on 127.0.0.1.
void measure_zookeeper_resumptions(const workload& at, report& results);

/// Measures the time from a fail-over to the next grant, with its own servers.
void measure_zookeeper_fail_over(report& results);

} // namespace bench
