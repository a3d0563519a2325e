// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/operations/request_answer.hpp"
#include "core/state/lock_record.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace colock::inline v0::detail {

using record_filter = std::function<bool(const lock_record&)>;

/// Returns the locks of this locker that a break may remove. Must be called before the break is sent.
[[nodiscard]] std::vector<lock_record::ptr> find_held(core& self, const record_filter& which);
/// Called when a break is answered or has failed. After success, the locks that were held before are lost. All others
/// that the break may have removed are verified: locks that were granted meanwhile, and locks whose create is
/// unanswered. After a failure all of them are verified, because the break may have been executed in part.
void on_broken(
    core& self, const record_filter& which, const std::vector<lock_record::ptr>& held_before, bool succeeded);

/// Asks the backend to remove locks of any holder. The handles of this locker are updated even if the caller is
/// cancelled, or if the answer arrives after the operation timeout.
template <class Outcome>
[[nodiscard]] asio::awaitable<Outcome> break_locks(
    std::shared_ptr<core> self, record_filter which, std::function<void(adapter&, completion<Outcome>)> start)
{
    auto held_before = find_held(*self, which);
    return request_answer<Outcome>(std::move(self), std::move(start),
        [which = std::move(which), held_before = std::move(held_before)](
            core& owner, const Outcome& outcome) { on_broken(owner, which, held_before, !outcome.error); });
}

} // namespace colock::inline v0::detail
