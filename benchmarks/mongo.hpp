// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "rivals.hpp"

#include <optional>
#include <string_view>

namespace bench {

/// All of it that the options ask for; a chart of what each rival reaches beside locco. Absent: the URL is not that of
/// one MongoDB server that can be had without a password.
[[nodiscard]] std::optional<chart> run_mongo(const options& settings, report& found);
constexpr std::string_view mongo_scheme = "mongodb";

/// The same commands as colock's, by the driver as it comes: a thread for each connection, as many of these as colock
/// has.
[[nodiscard]] rate run_driver_threads(const race& of);

/// What a waiter and a connection take.
void measure_mongo_memory(const options& settings, report& found);

} // namespace bench
