// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "workload.hpp"

#include <optional>
#include <string_view>

namespace bench {

/// Runs the selected parts. Returns a chart of the rates as multiples of locco's rate. Returns nothing if the URL does
/// not name a single MongoDB server without a password.
[[nodiscard]] std::optional<chart> run_mongo(const options& settings, report& results);
constexpr std::string_view mongo_scheme = "mongodb";

/// Sends the same commands as colock with the plain driver: one thread for each connection, with as many connections as
/// colock.
[[nodiscard]] rate run_driver_threads(const workload& load);

/// Measures the memory of a waiter and of a connection.
void measure_mongo_memory(const options& settings, report& results);

} // namespace bench
