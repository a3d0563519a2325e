// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/background_purge.hpp"

#include <colock/locker.hpp>

#include "core/operations/operations.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/core.hpp"
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

namespace colock::inline v0::detail {

namespace {

using std::chrono::milliseconds;

/// TTL of the common purge lock. The lock is extended at the first step of a purge that finds less than half of the TTL
/// left. The other half is enough for that step and the pause after it.
milliseconds purge_lock_ttl(const core& self)
{
    const auto min_ttl = 3 * self.options.purge->interval + 2 * self.options.operation_timeout;
    return std::min(std::max(min_ttl, self.options.ttl), self.limits.max_ttl);
}

asio::awaitable<std::optional<lock>> try_acquire_purge_lock(const std::shared_ptr<core>& self)
{
    // Sets the options whose defaults in the locker are meant for other locks.
    return operations::try_acquire(self, locker::purge_key, lease_clock::duration::zero(),
        {.ttl = purge_lock_ttl(*self), .comment = "purges in the background", .max_hold = self->limits.max_ttl});
}

asio::awaitable<void> purge_all(std::shared_ptr<core> self, lock& purge_lock)
{
    std::string cursor;
    do {
        if (purge_lock.valid_for() < purge_lock_ttl(*self) / 2)
            co_await purge_lock.extend(purge_lock_ttl(*self));
        cursor = co_await operations::purge_step(self, self->options.purge->limit, std::move(cursor));
    } while (!cursor.empty() && purge_lock.held() && !self->closed_to_new);
}

/// Waits for `span`. Returns false if the wait ended early because the core accepts no new acquires.
asio::awaitable<bool> pause_for(std::shared_ptr<core> self, lease_clock::duration span)
{
    condition timeout;
    co_await wait_until(
        *self, timeout, saturating_add(lease_clock::now(), span), [&] { return self->closed_to_new.load(); },
        on_close::end_wait);
    co_return !self->closed_to_new;
}

/// Reports a recurring error to the observer only once.
class warning_reporter
{
public:
    explicit warning_reporter(const core& self) : self_(self) {}

    void reset() noexcept { last_ = {}; }
    void report(const boost::system::system_error& exception)
    {
        // The loss of the purge lock has already been reported.
        if (exception.code() == errc::not_held || std::exchange(last_, exception.code()) == exception.code())
            return;
        if (self_.options.observer && !self_.closed_to_new) {
            self_.options.observer->warning(self_.backend->traits().name,
                std::string("the background purge will be repeated: ") + exception.what());
        }
    }

private:
    const core& self_;
    error_code last_;
};

asio::awaitable<void> purge_in_background(std::shared_ptr<core> self)
{
    std::optional<lock> purge_lock;
    warning_reporter warnings(*self);
    do {
        try {
            if (!purge_lock || !purge_lock->held())
                purge_lock = co_await try_acquire_purge_lock(self);
            if (purge_lock)
                co_await purge_all(self, *purge_lock);
            warnings.reset();
        } catch (const boost::system::system_error& exception) {
            // An error of the backend, or of the operating system, which may have no randomness for a token.
            warnings.report(exception);
        } catch (const std::bad_alloc&) {
            // Memory may be available at the next attempt.
            continue;
        }
    } while (co_await pause_for(self, spread(self->options.purge->interval, 0.1)));
}

} // namespace

void begin_background_purge(const std::shared_ptr<core>& self)
{
    const auto executor = self->executor();
    // Detached, because the coroutine ends with the core, and reports its errors to the observer.
    if (self->options.purge && self->can.expires && executor)
        asio::co_spawn(new_strand(executor), purge_in_background(self), asio::detached);
}

} // namespace colock::inline v0::detail
