// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/tls.hpp"
#include "redis/connection/server_connection.hpp"
#include "redis/settings.hpp"
#include "remote/requests/lost_requests.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <optional>
#include <string>

namespace colock::redis::detail {

/// Makes all connections of a client, and numbers them.
///
/// Thread safety: none; belongs to the strand.
class connection_factory
{
public:
    connection_factory(asio::any_io_executor strand, const settings& config);

    /// Before a connection is made.
    /// \returns what is to be told of TLS files that have changed and cannot be used; else nothing
    /// \throws colock::error `invalid_options` if there are none from before
    [[nodiscard]] std::optional<std::string> read_tls_files();
    [[nodiscard]] std::shared_ptr<server_connection> make(endpoint where);
    /// Lets go of one that has ended, or is closed: it is destroyed by a handler of its own, because the one that runs
    /// may be among its own.
    void drop(std::shared_ptr<server_connection>& used) const;
    /// The number of the last one.
    [[nodiscard]] remote::connection_number last() const noexcept { return last_; }

private:
    const asio::any_io_executor strand_;
    const settings& config_;
    remote::tls_files tls_;
    remote::connection_number last_ = 0;
};

} // namespace colock::redis::detail
