// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/operations/query.hpp"
#include "core/state/record.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace colock::detail {

using concerns = std::function<bool(const record&)>;

/// Returns the locks of this locker that a break, which is about to be sent, may find.
[[nodiscard]] std::vector<record::ptr> held_of(core& self, const concerns& which);
/// Called when a break is answered or has failed. The locks that were held before a successful one are lost. All others
/// that it may have removed are verified: those that were granted meanwhile, those whose create is unanswered, and
/// after a failure all of them, because it may have been carried out in part.
void on_broken(core& self, const concerns& which, const std::vector<record::ptr>& held_before, bool succeeded);

/// Asks the backend to remove locks of any holder. The handles of this locker hear of it even if the caller is
/// cancelled, or if the answer comes after the operation timeout.
template <class Outcome>
[[nodiscard]] asio::awaitable<Outcome> query_and_break(
    std::shared_ptr<core> self, concerns which, std::function<void(adapter&, completion<Outcome>)> start)
{
    auto held_before = held_of(*self, which);
    return query<Outcome>(std::move(self), std::move(start),
        [which = std::move(which), held_before = std::move(held_before)](
            core& owner, const Outcome& outcome) { on_broken(owner, which, held_before, !outcome.error); });
}

} // namespace colock::detail
