// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/query.hpp"
#include "core/verbs.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace colock::detail {

using concerns = std::function<bool(const record&)>;

inline std::vector<record::ptr> held_of(core& self, const concerns& which)
{
    std::vector<record::ptr> found;
    const std::lock_guard guard(self.mutex);
    for (record& held : self.leased.all()) {
        if (which(held))
            found.emplace_back(&held);
    }
    return found;
}

/// Returns the locks that may have been granted since a break was sent. Marks each claim whose create is unanswered, so
/// that its grant is verified. With an immediate backend no mark is needed, because it reports the claims that it
/// breaks.
inline std::vector<record::ptr> granted_since(core& self, const concerns& which)
{
    std::vector<record::ptr> found;
    const std::lock_guard guard(self.mutex);
    for (record& held : self.leased.all()) {
        if (which(held))
            found.emplace_back(&held);
    }
    if (self.can.immediate)
        return found;
    const auto verify = [&](record& wanted) {
        if (wanted.under_way == operation::create && which(wanted))
            wanted.broken_before_grant = true;
    };
    self.queues.for_each(verify);
    std::for_each(self.trying.begin(), self.trying.end(), verify);
    return found;
}

/// Asks the backend to remove locks, whoever holds them. The handles of this locker for which it is done hear of it at
/// once.
template <class Outcome>
[[nodiscard]] asio::awaitable<Outcome> query_and_break(
    std::shared_ptr<core> self, concerns which, std::function<void(adapter&, completion<Outcome>)> start)
{
    const auto held_before = held_of(*self, which);
    auto answer = co_await query(self, std::move(start));
    if (answer.error)
        co_return answer;
    for (const auto& held : held_before)
        self->declare_lost(held, lost_reason::broken);
    // Whether the break came before or after the grant of these, only the backend knows.
    const auto maybe_broken = granted_since(*self, which);
    for (const auto& held : maybe_broken) {
        try {
            static_cast<void>(co_await verbs::is_valid(self, held));
        } catch (const error&) {
            // No answer is no loss: it will be found by the next renewal or extension, as in any other process.
        }
    }
    co_return answer;
}

} // namespace colock::detail
