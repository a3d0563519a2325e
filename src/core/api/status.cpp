// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/status.hpp>

namespace colock::inline v0 {

const char* to_string(lock_mode mode) noexcept
{
    return mode == lock_mode::exclusive ? "exclusive" : "shared";
}

bool filter::matches(const lock_status& status) const
{
    return (!key || status.key == *key) && (!key_prefix || status.key.starts_with(*key_prefix)) &&
           (!group || status.group == *group) && (!owner || status.owner == *owner) &&
           (!mode || status.mode == *mode) &&
           (!created_before || (status.created && *status.created < *created_before)) &&
           (!created_after || (status.created && *status.created >= *created_after)) &&
           (!remaining_below || (status.remaining && *status.remaining < *remaining_below)) &&
           (!remaining_at_least || !status.remaining || *status.remaining >= *remaining_at_least);
}

} // namespace colock::inline v0
