// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/locker.hpp>

#include "core/operations/background_purge.hpp"
#include "core/operations/operations.hpp"
#include "core/state/core.hpp"

namespace colock::inline v0 {

struct locker::handle
{
    std::shared_ptr<detail::core> core;

    explicit handle(std::shared_ptr<detail::core> shared) : core(std::move(shared)) {}
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    ~handle() { detail::operations::on_last_handle_destroyed(*core); }
};

locker::locker(std::shared_ptr<adapter> backend, locker_options options)
    : handle_(std::make_shared<handle>(detail::core::make(std::move(backend), std::move(options))))
{
    detail::begin_background_purge(core());
}

const std::shared_ptr<detail::core>& locker::core() const noexcept
{
    return handle_->core;
}

asio::any_io_executor locker::get_executor() const
{
    return core()->executor();
}

asio::awaitable<lock> locker::acquire(key_name key, acquire_options options) const
{
    return detail::operations::acquire(
        core(), detail::operations::prepare(core(), std::move(key.name), std::move(options), renewal::manual, true));
}

asio::awaitable<std::optional<lock>> locker::try_acquire(key_name key, acquire_options options) const
{
    return detail::operations::try_acquire(
        core(), std::move(key.name), lease_clock::duration::zero(), std::move(options));
}

asio::awaitable<lock_group> locker::acquire_all(group_members keys, acquire_options options) const
{
    return detail::operations::acquire_all(core(), std::move(keys), std::move(options));
}

asio::awaitable<lock_group> locker::acquire_global(acquire_options options) const
{
    return acquire_all({global_key}, std::move(options));
}

lock_group locker::group(std::string id) const
{
    return detail::operations::group(core(), std::move(id));
}

asio::awaitable<lock> locker::adopt(std::string ticket, acquire_options options) const
{
    return detail::operations::adopt(core(), std::move(ticket), std::move(options));
}

asio::awaitable<bool> locker::is_locked(key_name key) const
{
    return detail::operations::is_locked(core(), std::move(key.name));
}

asio::awaitable<std::vector<lock_status>> locker::list(filter which, list_order order) const
{
    return detail::operations::list(core(), std::move(which), order);
}

asio::awaitable<lock_page> locker::list_page(filter which, std::string cursor) const
{
    return detail::operations::list_page(core(), std::move(which), std::move(cursor));
}

asio::awaitable<std::vector<lock_status>> locker::purge(std::size_t limit) const
{
    return detail::operations::purge(core(), limit);
}

asio::awaitable<std::vector<lock_status>> locker::break_lock(key_name key) const
{
    return detail::operations::break_lock(core(), std::move(key.name));
}

std::vector<held_lock> locker::held_locks() const
{
    return detail::operations::held_locks(*core());
}

std::vector<waiting_acquire> locker::waiting_acquires() const
{
    return detail::operations::waiting_acquires(*core());
}

locker_stats locker::stats() const
{
    return detail::operations::stats(*core());
}

locker_options locker::defaults() const
{
    return detail::operations::defaults(*core());
}

asio::awaitable<shutdown_report> locker::shutdown(std::chrono::milliseconds deadline) const
{
    return detail::operations::shutdown(core(), deadline);
}

} // namespace colock::inline v0
