// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "workload.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace bench {

/// Runs the selected parts. Returns a chart of the rates relative to the raw rate. Returns nothing if the URL does not
/// name a Redis server without a password.
[[nodiscard]] std::optional<chart> run_redis(const options& settings, report& results);
constexpr std::string_view redis_scheme = "redis";

/// Measures colock, the same commands on a raw socket, a plain loop with the driver, and programs of other libraries,
/// in turn and round by round. Returns a chart of the rates relative to the raw rate.
[[nodiscard]] chart measure_redis_uncontended(const options& settings, report& results);

/// The `--part` with which this program calls run_driver_and_exit().
constexpr std::string_view driver_part = "driver-program";
/// Calls run_driver() in a process of its own, which run_processes() has started. Prints the result and exits.
[[noreturn]] void run_driver_and_exit(const options& settings);

/// Measures colock and the programs of other libraries, if any, with eight workers for each key.
void measure_redis_contended(const options& settings, report& results);

/// Sends the commands of each pair over a plain socket, with the same number of pairs in flight. A client that sends
/// separate commands for each pair cannot be much faster than this. colock can be faster, because it sends one command
/// for several pairs.
/// \param value the value that colock stores at a key
[[nodiscard]] rate run_raw(const workload& load, const std::string& value);
/// Returns the value that is stored at a key now.
[[nodiscard]] std::string stored_at(const workload& load, const std::string& key);
/// Returns the CPU time that the server has used since its start.
[[nodiscard]] double server_cpu_us(const workload& load);

/// Sends the commands of run_raw() in a loop, with the driver that colock uses.
[[nodiscard]] rate run_driver(const workload& load, const std::string& value);

/// Compares one `acquire_all` of several keys to acquires of the same keys one after the other.
void measure_redis_groups(const options& settings, report& results);

/// Measures the hand-off from a release to the next waiter in another process, over a connection with a delay of 1 ms,
/// in round trips. The other process is this program with `--part hand-off-partner`.
void measure_redis_hand_off(const workload& at, const options& settings, report& results);
/// The `--part` with which this program calls run_redis_hand_off_partner().
constexpr std::string_view hand_off_partner = "hand-off-partner";
[[noreturn]] void run_redis_hand_off_partner(const options& settings);

/// Measures the cost of waiters on one key for the server and for this process. The server must have no other clients.
void measure_redis_waiters(const workload& at, const options& settings, report& results);

/// Measures the longest handler of the event loop with waiters on many keys.
void measure_redis_stalls(const workload& at, const options& settings, report& results);

/// Measures a context with one and with two threads: the CPU time of the process per pair, for colock, for a loop with
/// the driver, and for posts through strands without a server, in turn.
/// \param value the value that colock stores at a key
void measure_redis_threads(const options& settings, const std::string& value, report& results);

/// Measures pairs on a cluster and on one server in turn: the CPU time of this process and of the servers per pair.
/// \param cluster_url the cluster of scripts/redis_cluster.sh
void measure_redis_cluster(const options& settings, const std::string& cluster_url, report& results);
/// Measures colock and the programs of other libraries on a cluster, in turn and round by round.
void measure_redis_cluster_peers(const options& settings, const std::string& cluster_url, report& results);

/// Measures the time from the promotion of a replica to the next grant, on a cluster of its own.
void measure_redis_fail_over(report& results);

} // namespace bench
