// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/toxiproxy.hpp"

#include <array>

namespace colock::testing {

/// A fault of a connection. `set` starts and ends the fault.
struct toxiproxy_fault
{
    const char* name;
    void (*set)(toxiproxy&, bool);
};

inline constexpr std::array toxiproxy_faults{
    toxiproxy_fault{"cut", [](toxiproxy& link, bool set) { link.enable(!set); }},
    toxiproxy_fault{"black hole",
        [](toxiproxy& link, bool set) {
            for (const auto* const stream : {"upstream", "downstream"}) {
                if (set)
                    link.add(stream, "timeout", stream, R"({"timeout":0})");
                else
                    link.remove(stream);
            }
        }},
};

} // namespace colock::testing
