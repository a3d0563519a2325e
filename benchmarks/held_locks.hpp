// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "workload.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace bench {

/// Returns the URL of a server at this port of 127.0.0.1.
using url_at = std::function<std::string(std::uint16_t port)>;

/// Measures the longest handler of the event loop with locks on many keys: during acquires, releases, acquires while
/// the server is unreachable, acquires after it is reachable again, and a shutdown.
/// \param at a server on 127.0.0.1
void measure_held_locks(
    const std::string& backend, const url_at& url, const workload& at, const options& settings, report& results);

} // namespace bench
