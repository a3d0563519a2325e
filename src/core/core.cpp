// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"

#include "core/unscheduled.hpp"
#include "core/validation.hpp"

#include <colock/observer.hpp>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <unistd.h>

#include <algorithm>
#include <climits>

namespace colock::detail {

using namespace std::chrono_literals;

namespace {

std::string host_name()
{
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::shared_ptr<const owner_data> default_owner(const locker_options& options)
{
    auto owner = std::make_shared<owner_data>();
    owner->owner = options.owner.empty() ? std::to_string(::getpid()) : options.owner;
    owner->host = options.host.empty() ? host_name() : options.host;
    return owner;
}

} // namespace

std::shared_ptr<core> core::make(std::shared_ptr<adapter> backend, locker_options options)
{
    if (!backend) {
        throw validation_error(errc::invalid_options,
            {.detail = "the adapter is null; make one with a factory, such as colock::memory::make_adapter"});
    }
    check_locker_options(options, *backend);
    auto made = std::make_shared<core>(std::move(backend), std::move(options));
    made->timers_.tell<&core::on_timer>(made);
    made->settler_.owned_by(made);
    made->leases_.owned_by(made);
    if (const auto executor = made->executor())
        join_context(executor, made);
    if (made->options_.observer)
        made->backend_->attach(made->options_.observer);
    made->backend_->add_user();
    return made;
}

core::core(std::shared_ptr<adapter> backend, locker_options options)
    : shard(std::move(backend), std::move(options)), owner_(default_owner(options_))
{
}

core::record_ptr core::prepare(const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options,
    renewal by_default, bool queues, std::string_view group)
{
    const auto ttl = options.ttl.value_or(self->options_.ttl);
    const auto max_hold = options.max_hold ? options.max_hold : self->options_.max_hold;
    auto refused = self->check(key, options);
    if (!refused && self->margins_.any())
        refused = check_margins(ttl, self->options_, by_default);
    auto owner = self->owner_;
    if (!options.owner.empty() || !options.comment.empty() || !group.empty()) {
        auto special = std::make_shared<owner_data>(*owner);
        if (!options.owner.empty())
            special->owner = std::move(options.owner);
        special->comment = std::move(options.comment);
        special->group = group;
        owner = std::move(special);
    }
    record_ptr made(new record(self, {.key = std::move(key),
                                         .mode = options.mode,
                                         .max_holders = options.max_holders,
                                         .ttl = ttl,
                                         .queues = queues,
                                         .owner = std::move(owner)}));
    made->refused = std::move(refused);
    if (options.retry)
        made->own_policy = std::make_unique<const retry_policy>(std::move(*options.retry));
    made->plan.asked_for(
        options.renewal.value_or(by_default) == renewal::automatic && ttl > 0ms, max_hold.value_or(0ms));
    return made;
}

std::unique_ptr<const failure> core::check(std::string_view key, const acquire_options& options) const
{
    auto refused = check_key(key, limits_);
    if (!refused && options.ttl)
        refused = check_ttl(*options.ttl, limits_, can_);
    if (!refused && (options.mode != lock_mode::exclusive || options.max_holders != 0))
        refused = check_mode(options.mode, options.max_holders, can_, backend_->name());
    if (!refused && !options.owner.empty())
        refused = check_label("owner", options.owner);
    if (!refused && !options.comment.empty())
        refused = check_label("comment", options.comment);
    if (!refused && options.retry)
        refused = check_retry(*options.retry);
    if (!refused && options.max_hold)
        refused = check_max_hold(*options.max_hold, limits_);
    return refused;
}

error_context core::context_of(const record& wanted) const
{
    return {.key = wanted.key(),
        .backend = backend_name(),
        .attempts = wanted.attempts_made,
        .elapsed = wanted.started == time_point{} ? 0ns : lease_clock::now() - wanted.started};
}

std::vector<held_lock> core::held_locks()
{
    std::vector<held_lock> result;
    const std::lock_guard guard(mutex_);
    const auto now = lease_clock::now();
    for (const record& held : leases_.all()) {
        const auto ends = held.lease().valid_until();
        if (ends <= now)
            continue;
        held_lock& seen = result.emplace_back();
        seen.key = held.key();
        seen.group = held.owner().group;
        seen.mode = held.mode();
        seen.fence = held.fence;
        seen.ttl = held.ttl();
        if (ends != time_point::max())
            seen.valid_for = ends - now;
    }
    return result;
}

locker_stats core::stats()
{
    locker_stats result;
    {
        const std::lock_guard guard(mutex_);
        result = stats_;
        // An expiry is noticed by nobody unless somebody listens.
        const auto now = lease_clock::now();
        result.held = static_cast<std::uint64_t>(std::count_if(leases_.all().begin(), leases_.all().end(),
            [now](const record& held) { return now < held.lease().valid_until(); }));
    }
    result.unproven += backend_->unproven();
    result.reconnects = backend_->reconnects();
    return result;
}

asio::awaitable<void> core::pause(std::shared_ptr<core> self, const record& wanted, time_point until)
{
    const unscheduled at_end{*self, self->pausing_};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            if (self->closed_to_new_ || lease_clock::now() >= until)
                break;
            self->timers_.schedule(self->pausing_, std::min(self->pausing_.due, until));
            seen = self->pausing_.version;
        }
        self->throw_if_inherited(wanted);
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await self->park(self->pausing_, place, seen);
    }
    if (self->closed_to_new_)
        self->throw_shutting_down(wanted);
}

void core::context_shutdown() noexcept
{
    work todo;
    std::optional<lease_timer> timer;
    {
        const std::lock_guard guard(mutex_);
        dead_ = true;
        closed_to_new_ = true;
        timer = timers_.stop();
        while (!parked_.empty())
            todo.wakes.add(parked_.front());
        settler_.give_up(todo);
    }
    // Destroying the handlers destroys coroutines, and with them what they hold.
    todo.run(*this);
}

} // namespace colock::detail
