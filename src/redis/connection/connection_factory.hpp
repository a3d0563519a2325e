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

namespace colock::inline v0::redis::detail {

/// Creates and numbers all connections of a client.
///
/// Thread safety: none; belongs to the strand.
class connection_factory
{
public:
    /// \param before_first the number before that of the first connection
    connection_factory(asio::any_io_executor strand, const settings& config, remote::connection_number before_first);

    /// Reloads the TLS files if they have changed. Called before `make`.
    /// \returns a warning if the changed files cannot be used and the previous ones stay in use; otherwise nothing
    /// \throws colock::error `invalid_options` if the files cannot be used and there are no previous ones
    [[nodiscard]] std::optional<std::string> read_tls_files();
    [[nodiscard]] std::shared_ptr<server_connection> make(endpoint server);
    /// Returns the number of the last connection.
    [[nodiscard]] remote::connection_number last_number() const noexcept { return last_number_; }
    /// Resets `connection`, which has ended or was closed. A posted handler destroys the connection, because the
    /// current handler may belong to it.
    void drop(std::shared_ptr<server_connection>& connection) const;

private:
    const asio::any_io_executor strand_;
    const settings& config_;
    remote::tls_files tls_;
    remote::connection_number last_number_;
};

} // namespace colock::inline v0::redis::detail
