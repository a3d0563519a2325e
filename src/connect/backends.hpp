// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/connect.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <array>
#include <memory>
#include <span>
#include <string_view>

namespace colock::inline v0::detail {

/// Makes an adapter from a URL with a scheme in lower case.
using connect_function = std::shared_ptr<adapter>(
    const asio::any_io_executor&, std::string_view url, const connect_options&);

// Each in the file of its backend. Those of backends that were not built are not defined.
connect_function connect_memory;
connect_function connect_redis;
connect_function connect_zookeeper;
connect_function connect_mongo;

/// One backend that a URL can name. The table is generated from each backend's CMakeLists.txt.
struct backend
{
    /// The schemes of the backend, without the suffix that may follow a '+'.
    std::array<std::string_view, 4> schemes;
    /// The forms of its URLs, for error messages.
    std::string_view forms;
    /// Null if this build does not contain the backend.
    connect_function* connect;
    /// The error message of a build without the backend.
    std::string_view refusal;
};

[[nodiscard]] std::span<const backend> backends() noexcept;

} // namespace colock::inline v0::detail
