// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <array>
#include <memory>
#include <span>
#include <string_view>

namespace colock::detail {

/// What an URL can name, as each backend's CMakeLists.txt tells it.
struct backend
{
    /// In its entry file.
    using connect_function = std::shared_ptr<adapter>(const asio::any_io_executor&, std::string_view url);

    /// Each without what may follow a '+'.
    std::array<std::string_view, 4> schemes;
    /// How its URLs are written.
    std::string_view forms;
    /// Null if this build has not got it.
    connect_function* connect;
    /// What such a build says.
    std::string_view refusal;
};

[[nodiscard]] std::span<const backend> backends() noexcept;

} // namespace colock::detail
