// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

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

} // namespace colock::detail
