// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/proxy.hpp"

#include <array>

namespace colock::testing {

/// A fault of a connection. `set` starts and ends the fault.
struct link_fault
{
    const char* name;
    void (*set)(proxy&, bool);
};

inline constexpr std::array link_faults{
    link_fault{"cut", [](proxy& link, bool set) { link.enable(!set); }},
    link_fault{"black hole",
        [](proxy& link, bool set) {
            for (const auto* const stream : {"upstream", "downstream"}) {
                if (set)
                    link.add(stream, "timeout", stream, R"({"timeout":0})");
                else
                    link.remove(stream);
            }
        }},
};

} // namespace colock::testing
