// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::detail {

/// A new strand. One over an erased executor is too large for an any_io_executor to hold without memory of its own, and
/// each of its copies takes some more; one over the executor that nearly everybody has fits.
[[nodiscard]] inline asio::any_io_executor new_strand(const asio::any_io_executor& executor)
{
    if (const auto* common = executor.target<asio::io_context::executor_type>())
        return asio::make_strand(*common);
    return asio::make_strand(executor);
}

/// `executor` if it is a strand that can be recognised: of an io_context, a thread_pool, or an erased executor; else a
/// new strand of it.
[[nodiscard]] inline asio::any_io_executor strand_of(const asio::any_io_executor& executor)
{
    if (executor.target<asio::strand<asio::io_context::executor_type>>() ||
        executor.target<asio::strand<asio::thread_pool::executor_type>>() ||
        executor.target<asio::strand<asio::any_io_executor>>())
        return executor;
    return new_strand(executor);
}

} // namespace colock::detail
