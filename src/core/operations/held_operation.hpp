// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/core.hpp"
#include "core/state/lock_record.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace colock::inline v0::detail::operations {

/// The common part of the operations on a granted lock.
class held_operation
{
public:
    static constexpr on_close closing = on_close::keep_waiting;

    held_operation(const held_operation&) = delete;
    held_operation& operator=(const held_operation&) = delete;

    [[nodiscard]] core& owner_core() const noexcept { return *core_; }

protected:
    held_operation(std::shared_ptr<core>&& self, lock_record::ptr&& record)
        : core_(std::move(self)), record_(std::move(record))
    {
    }
    ~held_operation() = default;

    const std::shared_ptr<core> core_;
    const lock_record::ptr record_;
};

/// Returns whether the caller has to wait for the result of a request for `record`. If so, schedules the end of the
/// wait, and stores in `seen` the version at which there was no result. Otherwise the result has arrived, or the caller
/// must not wait any longer.
template <class Outcome>
bool must_await_result(core& self, lock_record& record, const std::optional<Outcome>& result,
    lease_clock::time_point until, std::uint32_t& seen)
{
    const std::lock_guard guard(self.mutex);
    if (result || record.current_phase() == phase::ended || self.is_backend_gone() || lease_clock::now() >= until)
        return false;
    record.lease_state().earliest_wait_deadline = std::min(record.lease_state().earliest_wait_deadline, until);
    if (record.current_phase() == phase::held)
        self.leases.reschedule(record);
    else
        self.timers.schedule_wait(record, record.release_due());
    seen = record.version;
    return true;
}

} // namespace colock::inline v0::detail::operations
