// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"
#include "rivals.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace bench {

/// Of a server that is reached through a port of 127.0.0.1.
using url_at = std::function<std::string(std::uint16_t port)>;

/// How long locks on many keys hold up the event loop at most: taken, given back, asked for while the server is away,
/// taken when it is back, and at a shutdown.
/// \param at a server on 127.0.0.1
void measure_held_locks(
    const std::string& backend, const url_at& url, const race& at, const options& settings, report& found);

} // namespace bench
