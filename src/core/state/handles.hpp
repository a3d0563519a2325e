// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/leadership.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>

#include "core/state/core.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::detail {

/// Gives access to the internals of the public handles of a core.
struct core::handles
{
    [[nodiscard]] static lock_group make_group(
        std::shared_ptr<core> owner, std::string id, std::vector<lock> locks, bool by_id = false)
    {
        lock_group group;
        group.core_ = std::move(owner);
        group.id_ = std::move(id);
        group.locks_ = std::move(locks);
        group.by_id_ = by_id;
        return group;
    }
    [[nodiscard]] static leadership make_leadership(lock&& elected) noexcept { return leadership(std::move(elected)); }
    [[nodiscard]] static lock_record& record_of(const lock& handle) noexcept
    {
        return lock_record::from_claim(handle.record_);
    }
};

} // namespace colock::inline v0::detail
