// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

/// Makes a new strand. A strand of a type-erased executor does not fit into an any_io_executor, so that the strand and
/// each of its copies need allocated memory. A strand of an io_context executor, the most common case, fits.
[[nodiscard]] inline asio::any_io_executor new_strand(const asio::any_io_executor& executor)
{
    if (const auto* common = executor.target<asio::io_context::executor_type>())
        return asio::make_strand(*common);
    return asio::make_strand(executor);
}

/// Returns whether the current thread runs a handler of a strand that `new_strand` has made.
[[nodiscard]] inline bool is_on_strand(const asio::any_io_executor& strand) noexcept
{
    if (const auto* common = strand.target<asio::strand<asio::io_context::executor_type>>())
        return common->running_in_this_thread();
    const auto* other = strand.target<asio::strand<asio::any_io_executor>>();
    return other && other->running_in_this_thread();
}

/// Returns `executor` if it is a recognizable strand: of an io_context, a thread_pool, or a type-erased executor.
/// Otherwise makes a new strand of it.
[[nodiscard]] inline asio::any_io_executor strand_of(const asio::any_io_executor& executor)
{
    if (executor.target<asio::strand<asio::io_context::executor_type>>() ||
        executor.target<asio::strand<asio::thread_pool::executor_type>>() ||
        executor.target<asio::strand<asio::any_io_executor>>())
        return executor;
    return new_strand(executor);
}

} // namespace colock::inline v0::detail
