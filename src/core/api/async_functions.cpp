// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/async_functions.hpp>

#include <colock/leadership.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/stats.hpp>
#include <colock/status.hpp>

#include "core/operations/run_operation.hpp"
#include "core/operations/spawn_operation.hpp"

#include <new>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::detail {

error_code code_of(const std::exception_ptr& failure)
{
    if (!failure)
        return {};
    try {
        std::rethrow_exception(failure);
    } catch (const boost::system::system_error& failed) {
        return failed.code();
    } catch (const std::bad_alloc&) {
        return make_error_code(boost::system::errc::not_enough_memory);
    } catch (...) {
        // Only a custom retry function can throw anything else. Its exception does not fit an error_code.
        return errc::invalid_retry;
    }
}

template <class T>
void run_coroutine(const asio::any_io_executor& executor, asio::awaitable<T> coroutine, operation_handler<T> handler)
{
    const auto gate = executor ? context_gate::of(executor) : nullptr;
    cancellation_relay relay(asio::get_associated_cancellation_slot(handler), gate);
    spawn_operation<T>(executor, gate, std::move(coroutine), std::move(handler), std::move(relay));
}

void complete_operation(const std::exception_ptr& failure, operation_handler<void> handler)
{
    complete_immediately<void>({}, std::move(handler), failure, {});
}

template void run_coroutine(const asio::any_io_executor&, asio::awaitable<void>, operation_handler<void>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<bool>, operation_handler<bool>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<lock>, operation_handler<lock>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<leadership>, operation_handler<leadership>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<leader>, operation_handler<leader>);
template void run_coroutine(
    const asio::any_io_executor&, asio::awaitable<std::optional<leader>>, operation_handler<std::optional<leader>>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<lock_group>, operation_handler<lock_group>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<std::optional<lock_group>>,
    operation_handler<std::optional<lock_group>>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<lock_page>, operation_handler<lock_page>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<std::string>, operation_handler<std::string>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<std::vector<lock_status>>,
    operation_handler<std::vector<lock_status>>);
template void run_coroutine(const asio::any_io_executor&, asio::awaitable<std::vector<lock_report>>,
    operation_handler<std::vector<lock_report>>);
template void run_coroutine(
    const asio::any_io_executor&, asio::awaitable<shutdown_report>, operation_handler<shutdown_report>);

} // namespace colock::inline v0::detail
