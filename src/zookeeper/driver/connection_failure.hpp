// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Reason why there is no connection.
struct connection_failure
{
    std::string text = "no server was reached";
    boost::system::error_code cause{};
};

/// Reads the reason from a line of the driver's log, because the driver reports it nowhere else. Returns nullopt if the
/// line contains none.
/// \param was_shut_down whether this client has shut down a silent connection, which the driver does not know
[[nodiscard]] std::optional<connection_failure> read_connection_failure(
    std::string_view log_line, bool was_shut_down = false);

} // namespace colock::inline v0::zookeeper::detail
