// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::remote {

/// Identifies a connection or a session of this client. Counted from 1, and never used twice.
using connection_number = std::uint64_t;

/// Records the connections and sessions that ended with unanswered requests. A request of such a connection may still
/// arrive at the server and take effect, until it is proven that it cannot.
///
/// There are two proofs: the server has closed the connection at the client's request, or the server process of the
/// connection no longer exists. A close by the client proves nothing, because the requests may still be in flight.
///
/// Thread safety: none.
class lost_requests
{
public:
    /// The identity of a connection on the server.
    struct identity
    {
        std::int64_t id = 0;
        /// The process of the server; empty if it is not known.
        std::string process{};
    };
    struct connection_to_close
    {
        connection_number number;
        std::int64_t id;
    };

    /// Number of connections that one server can have.
    static constexpr connection_number numbers_per_server = connection_number{1} << 40;

    /// \param before_first the number before that of the first connection to this server. If a client has several
    ///     servers, each has numbers of its own. Nothing is known of the connections to other servers, so their
    ///     requests count as requests that may still arrive.
    explicit lost_requests(connection_number before_first = 0) : before_first_(before_first), forgotten_(before_first)
    {
    }

    /// Records a connection that has ended with unanswered requests.
    void add(connection_number number, identity server_identity);
    /// Returns whether an unanswered request of that connection may still take effect. False for the current
    /// connection, because its requests are executed in order.
    [[nodiscard]] bool may_arrive(connection_number sent_on) const noexcept;

    /// Must be called when a connection to that server process has been established. It is then certain that all
    /// connections to another process have ended. Proves nothing if the process is not known.
    void on_connected_to(std::string_view process);
    /// Returns the connections that the current server must be asked to close before any other request. Connections to
    /// a server process that is known to be another one are not included, because their ids may belong to other clients
    /// on this server.
    [[nodiscard]] std::vector<connection_to_close> connections_to_close() const;
    void on_closed_by_server(connection_number number) { lost_.erase(number); }
    /// Must be called when the server refuses to close the connection. The server is not asked again.
    void on_close_refused(connection_number number);

private:
    struct lost_connection
    {
        identity server_identity;
        bool refused = false;
    };
    const connection_number before_first_;
    std::map<connection_number, lost_connection> lost_;
    /// Connections up to this number were removed to limit the memory use. Their requests count as requests that may
    /// still arrive.
    connection_number forgotten_;
};

/// The unanswered requests of one claim, each identified by the connection that it was sent on.
///
/// Thread safety: that of the claim.
class unsettled_requests
{
public:
    void add(connection_number sent_on) { unanswered_.push_back(sent_on); }
    [[nodiscard]] bool empty() const noexcept { return unanswered_.empty(); }
    /// Returns the connection of the first unanswered request. Must not be called if there is none.
    [[nodiscard]] connection_number oldest() const { return unanswered_.front(); }
    /// Must be called when a later request of the claim was answered on the connection `answered_on`. Removes the
    /// requests that were sent on the same connection, and those that cannot arrive any more. Returns true if the last
    /// request was removed.
    [[nodiscard]] bool settle(connection_number answered_on, const lost_requests& lost);

private:
    std::vector<connection_number> unanswered_;
};

} // namespace colock::inline v0::remote
