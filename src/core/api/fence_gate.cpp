// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/error.hpp>
#include <colock/fence_gate.hpp>
#include <colock/lock.hpp>

namespace colock::inline v0 {

bool fence_gate::admit(std::string_view key, std::uint64_t fence)
{
    if (key.empty())
        throw validation_error(errc::invalid_key, {.detail = "the key is empty; was the lock moved from?"});
    if (fence == 0)
        throw validation_error(
            errc::invalid_options, {.key = std::string(key),
                                       .detail = "the fence is 0: the backend does not number its grants, so the gate "
                                                 "cannot distinguish an old grant from a new one"});
    const std::lock_guard guard(mutex_);
    const auto known = highest_.find(key);
    if (known == highest_.end()) {
        highest_.emplace(key, fence);
        return true;
    }
    if (fence < known->second)
        return false;
    known->second = fence;
    return true;
}

bool fence_gate::admit(const lock& holder)
{
    return admit(holder.key(), holder.fence());
}

std::uint64_t fence_gate::highest(std::string_view key) const
{
    const std::lock_guard guard(mutex_);
    const auto known = highest_.find(key);
    return known == highest_.end() ? 0 : known->second;
}

void fence_gate::forget(std::string_view key)
{
    const std::lock_guard guard(mutex_);
    if (const auto known = highest_.find(key); known != highest_.end())
        highest_.erase(known);
}

std::size_t fence_gate::size() const
{
    const std::lock_guard guard(mutex_);
    return highest_.size();
}

} // namespace colock::inline v0
