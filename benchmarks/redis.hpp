// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "rivals.hpp"

#include <string_view>

namespace bench {

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
