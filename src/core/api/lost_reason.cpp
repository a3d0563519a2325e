// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/lost_reason.hpp>

namespace colock::inline v0 {

const char* to_string(lost_reason reason) noexcept
{
    switch (reason) {
    case lost_reason::released:
        return "released";
    case lost_reason::expired:
        return "expired";
    case lost_reason::taken:
        return "taken";
    case lost_reason::session:
        return "session";
    case lost_reason::broken:
        return "broken";
    case lost_reason::shutting_down:
        return "shutting_down";
    }
    return "unknown";
}

} // namespace colock::inline v0
