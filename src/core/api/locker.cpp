// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/locker.hpp>

#include "core/operations/background_purge.hpp"
#include "core/operations/operations.hpp"
#include "core/state/core.hpp"

namespace colock::inline v0 {

struct locker::handle
{
    core_ptr core;

    explicit handle(core_ptr shared) : core(std::move(shared)) {}
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    ~handle() { detail::operations::on_last_handle_destroyed(*core); }
};

locker::locker(std::shared_ptr<adapter> backend, locker_options options)
    : handle_(std::make_shared<handle>(detail::core::make(std::move(backend), std::move(options))))
{
    detail::begin_background_purge(core());
}

const locker::core_ptr& locker::core() const noexcept
{
    return handle_->core;
}

asio::any_io_executor locker::get_executor() const
{
    return core()->executor();
}

namespace {

using detail::record;

record::ptr prepare_acquire(const std::shared_ptr<detail::core>& core, std::string&& key, acquire_options&& options)
{
    return detail::operations::prepare(core, std::move(key), std::move(options), renewal::manual, true);
}

record::ptr prepare_try_acquire(const std::shared_ptr<detail::core>& core, std::string&& key, acquire_options&& options)
{
    return detail::operations::prepare(core, std::move(key), std::move(options), renewal::manual, false);
}

} // namespace

asio::awaitable<lock> locker::acquire(std::string key, acquire_options options) const
{
    return detail::operations::acquire(core(), prepare_acquire(core(), std::move(key), std::move(options)));
}

void locker::start_acquire(const core_ptr& core, std::string&& key, acquire_options&& options,
    const asio::any_io_executor& executor, detail::verb_handler<lock> handler, const asio::any_io_executor& caller)
{
    auto wanted = prepare_acquire(core, std::move(key), std::move(options));
    detail::operations::start_acquire(executor, std::move(handler), caller, core, std::move(wanted));
}

asio::awaitable<std::optional<lock>> locker::try_acquire(std::string key, acquire_options options) const
{
    return detail::operations::try_acquire(core(), prepare_try_acquire(core(), std::move(key), std::move(options)));
}

void locker::start_try_acquire(const core_ptr& core, std::string&& key, acquire_options&& options,
    const asio::any_io_executor& executor, detail::verb_handler<std::optional<lock>> handler,
    const asio::any_io_executor& caller)
{
    auto wanted = prepare_try_acquire(core, std::move(key), std::move(options));
    detail::operations::start_try_acquire(executor, std::move(handler), caller, core, std::move(wanted));
}

asio::awaitable<lock_group> locker::acquire_all(group_members keys, acquire_options options) const
{
    return acquire_all_verb(core(), std::move(keys), std::move(options));
}

asio::awaitable<lock_group> locker::acquire_all_verb(core_ptr core, group_members keys, acquire_options options)
{
    return detail::operations::acquire_all(std::move(core), std::move(keys), std::move(options));
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
    return adopt_verb(core(), std::move(ticket), std::move(options));
}

asio::awaitable<lock> locker::adopt_verb(core_ptr core, std::string ticket, acquire_options options)
{
    return detail::operations::adopt(std::move(core), std::move(ticket), std::move(options));
}

asio::awaitable<bool> locker::is_locked(std::string key) const
{
    return is_locked_verb(core(), std::move(key));
}

asio::awaitable<bool> locker::is_locked_verb(core_ptr core, std::string key)
{
    return detail::operations::is_locked(std::move(core), std::move(key));
}

asio::awaitable<std::vector<lock_status>> locker::list(filter which, list_order order) const
{
    return list_verb(core(), std::move(which), order);
}

asio::awaitable<std::vector<lock_status>> locker::list_verb(core_ptr core, filter which, list_order order)
{
    return detail::operations::list(std::move(core), std::move(which), order);
}

asio::awaitable<lock_page> locker::list_page(filter which, std::string cursor) const
{
    return list_page_verb(core(), std::move(which), std::move(cursor));
}

asio::awaitable<lock_page> locker::list_page_verb(core_ptr core, filter which, std::string cursor)
{
    return detail::operations::list_page(std::move(core), std::move(which), std::move(cursor));
}

asio::awaitable<std::vector<lock_status>> locker::purge(std::size_t limit) const
{
    return purge_verb(core(), limit);
}

asio::awaitable<std::vector<lock_status>> locker::purge_verb(core_ptr core, std::size_t limit)
{
    return detail::operations::purge(std::move(core), limit);
}

asio::awaitable<std::vector<lock_status>> locker::break_lock(std::string key) const
{
    return break_verb(core(), std::move(key));
}

asio::awaitable<std::vector<lock_status>> locker::break_verb(core_ptr core, std::string key)
{
    return detail::operations::break_lock(std::move(core), std::move(key));
}

std::vector<held_lock> locker::held_locks() const
{
    return detail::operations::held_locks(*core());
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
    return shutdown_verb(core(), deadline);
}

asio::awaitable<shutdown_report> locker::shutdown_verb(core_ptr core, std::chrono::milliseconds deadline)
{
    return detail::operations::shutdown(std::move(core), deadline);
}

} // namespace colock::inline v0
