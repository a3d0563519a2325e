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
        lock_group made;
        made.core_ = std::move(owner);
        made.id_ = std::move(id);
        made.locks_ = std::move(locks);
        made.by_id_ = by_id;
        return made;
    }
    [[nodiscard]] static leadership make_leadership(lock&& elected) noexcept { return leadership(std::move(elected)); }
    [[nodiscard]] static record& record_of(const lock& held) noexcept { return record::of(held.record_); }
    [[nodiscard]] static core& core_of(const lock& held) noexcept { return *held.core_; }
};

} // namespace colock::inline v0::detail
