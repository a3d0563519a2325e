// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "rivals.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace bench {

/// All of it that the options ask for; a chart of what each rival reaches of the raw rate. Absent: the URL is not that
/// of a Redis server that can be had without a password.
[[nodiscard]] std::optional<chart> run_redis(const options& settings, report& found);
constexpr std::string_view redis_scheme = "redis";

/// colock on a Redis server, beside the same commands sent raw, a bare loop over the driver, and other libraries'
/// programs: all in turn, round by round. Returns a chart of what each reaches of the raw rate.
[[nodiscard]] chart run_uncontended_race(const options& settings, report& found);

constexpr std::string_view driver_program = "driver-program";
/// The bare loop over the driver, as one of the programs: says what it measured, and ends the process.
[[noreturn]] void run_driver_program(const options& settings);

/// colock and the other libraries' programs, if any, where eight workers share each key.
void run_contended_race(const options& settings, report& found);

/// The same commands as colock's, over one plain socket, as many pairs in flight: what no client can beat by much.
/// `value` is what colock stores at a key.
[[nodiscard]] rate run_raw(const race& of, const std::string& value);
/// What is stored at a key now.
[[nodiscard]] std::string stored_at(const race& of, const std::string& key);
/// CPU time that the server has used since its start.
[[nodiscard]] double server_cpu_us(const race& of);

/// The same commands, by a loop over the driver that colock uses.
[[nodiscard]] rate run_driver(const race& of, const std::string& value);

/// How much sooner several locks are had by one `acquire_all` than one after the other.
void measure_redis_groups(const options& settings, report& found);

/// Hand-off from a release to the next waiter of another process, through a link that is 1 ms long, in round trips.
/// The other process is this program, run with `--part` and this name.
void measure_redis_hand_off(const race& at, const options& settings, report& found);
constexpr std::string_view hand_off_partner = "hand-off-partner";
[[noreturn]] void run_redis_hand_off_partner(const options& settings);

/// What waiters on one key cost the server, and this process. The server must have no other clients.
void measure_redis_waiters(const race& at, const options& settings, report& found);

/// How long waiters on many keys hold up the event loop at most.
void measure_redis_stalls(const race& at, const options& settings, report& found);

/// Whether this process grows over up to 1,000,000 pairs.
void measure_redis_growth(const options& settings, report& found);

} // namespace bench
