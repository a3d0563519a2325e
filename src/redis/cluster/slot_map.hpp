// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"
#include "redis/slot.hpp"
#include "redis/url.hpp"

#include <optional>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Consecutive slots of one master.
struct slot_range
{
    slot_number first = 0;
    slot_number last = 0;
    endpoint master{};

    friend bool operator==(const slot_range&, const slot_range&) = default;
};

/// Reads the reply to CLUSTER SLOTS. Returns nothing if the reply has another form.
/// \param replier the node that has replied. Its host is used for nodes whose host the cluster does not know.
[[nodiscard]] std::optional<std::vector<slot_range>> parse_slots(const reply& answer, const endpoint& replier);

} // namespace colock::inline v0::redis::detail
