// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/background_purge.hpp"

#include <colock/locker.hpp>

#include "core/operations/operations.hpp"
#include "core/state/core.hpp"
#include "core/state/timer_guard.hpp"
#include "util/jitter.hpp"
#include "util/strand.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace colock::detail {

namespace {

using std::chrono::milliseconds;

/// It is extended at the first step of a sweep that finds less than half of it left: the other half is enough for that
/// step and a rest.
milliseconds ttl_of_turn(const core& self)
{
    const auto least = 3 * self.options.purge->interval + 2 * self.options.operation_timeout;
    return std::min(std::max(least, self.options.ttl), self.limits.max_ttl);
}

record::ptr ask_for_turn(const std::shared_ptr<core>& self)
{
    // Whatever the defaults of other locks are.
    return operations::prepare(self, locker::purge_key,
        {.ttl = ttl_of_turn(*self), .comment = "purges in the background", .max_hold = self->limits.max_ttl},
        renewal::manual, false);
}

asio::awaitable<void> sweep(std::shared_ptr<core> self, lock& turn)
{
    std::string cursor;
    do {
        if (turn.expires_at() - lease_clock::now() < ttl_of_turn(*self) / 2)
            co_await turn.extend(ttl_of_turn(*self));
        cursor = co_await operations::purge_step(self, self->options.purge->limit, std::move(cursor));
    } while (!cursor.empty() && turn.held() && !self->closed_to_new);
}

/// False if it has ended before, because no new acquire may begin any more.
asio::awaitable<bool> rest(std::shared_ptr<core> self, lease_clock::duration span)
{
    plain_condition over;
    const timer_guard on_exit{*self, over};
    const auto until = saturating_add(lease_clock::now(), span);
    wait_state place;
    place.ends_when_closed = true;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex);
            if (self->closed_to_new)
                co_return false;
            if (lease_clock::now() >= until)
                co_return true;
            self->timers.schedule(over, until);
            seen = over.version;
        }
        co_await self->async_wait(over, place, seen);
    }
}

/// What it is again and again, an observer hears once.
class complaint
{
public:
    explicit complaint(const core& self) : self_(self) {}

    void withdraw() noexcept { last_ = {}; }
    void make(const boost::system::system_error& why)
    {
        // Of a lost turn it has heard.
        if (why.code() == errc::not_held || std::exchange(last_, why.code()) == why.code())
            return;
        if (self_.options.observer && !self_.closed_to_new) {
            self_.options.observer->warning(
                self_.backend->name(), std::string("the purge in the background will be tried again: ") + why.what());
        }
    }

private:
    const core& self_;
    error_code last_;
};

asio::awaitable<void> purge_in_background(std::shared_ptr<core> self)
{
    std::optional<lock> turn;
    complaint trouble(*self);
    do {
        try {
            if (!turn || !turn->held())
                turn = co_await operations::try_acquire(self, ask_for_turn(self));
            if (turn)
                co_await sweep(self, *turn);
            trouble.withdraw();
        } catch (const boost::system::system_error& why) {
            // The backend's, or the operating system's, which may have no randomness for a token.
            trouble.make(why);
        } catch (const std::bad_alloc&) {
            // There may be more by then.
            continue;
        }
    } while (co_await rest(self, spread(self->options.purge->interval, 0.1)));
}

} // namespace

void begin_background_purge(const std::shared_ptr<core>& self)
{
    const auto executor = self->executor();
    // Detached: it ends with the core, and tells the observer of every error itself.
    if (self->options.purge && self->can.expires && executor)
        asio::co_spawn(new_strand(executor), purge_in_background(self), asio::detached);
}

} // namespace colock::detail
