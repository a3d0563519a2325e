// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "rivals.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bench {

/// All of it that the options ask for; a chart of what each rival reaches beside Curator. Absent: the URL is not that
/// of one ZooKeeper server that can be had without a password.
[[nodiscard]] std::optional<chart> run_zookeeper(const options& settings, report& found);
constexpr std::string_view zookeeper_scheme = "zookeeper";

/// Creates and deletes of a pair's node, through the driver that colock uses and as many in flight; no lock.
[[nodiscard]] rate run_raw_nodes(const race& of);

/// How long a write takes through that driver, each by itself; in milliseconds.
[[nodiscard]] std::vector<double> time_raw_writes(const race& at, std::size_t count);

/// What locks and waiters cost the server, counted by itself. It must have no other clients.
void measure_zookeeper_waiters(const race& at, const options& settings, report& found);

/// Measures what thousands of waiters for one key cost the server, and how soon they are granted.
void measure_zookeeper_crowds(const race& at, const options& settings, report& found);

/// How many round trips a lock and a hand-off take.
void measure_zookeeper_round_trips(const race& at, const options& settings, report& found);

/// How soon after a fail-over the next lock is granted, on servers of its own.
void measure_zookeeper_fail_over(report& found);

} // namespace bench
