// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection_pool.hpp"
#include "mongo/driver/destination.hpp"
#include "mongo/driver/hello.hpp"
#include "mongo/driver/server_clock.hpp"

#include <colock/clock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::mongo::detail {

/// Where and how to look for the primary.
struct discovery_params
{
    /// At least one host. Members that these hosts name are asked with the same TLS settings.
    std::vector<destination> hosts{};
    /// Name of the replica set; empty: any replica set, or none.
    std::string replica_set{};
    /// True: only `hosts` are asked. False: the members that they name are asked, too.
    bool direct = false;
};

/// Result of a server discovery.
struct discovery_result
{
    enum class kind : unsigned char
    {
        /// The primary was found. The other members describe it.
        primary,
        /// No server that accepts writes was found.
        not_found,
        /// Servers have answered, but each of them belongs to another replica set, or is too old.
        misconfigured,
    };
    kind outcome = kind::not_found;
    /// Address of the primary, without credentials.
    destination at{};
    /// The clock that the primary states.
    server_clock clock{};
    /// A server that is in no replica set has no change streams.
    server_identity identity{};
    /// Reasons why no primary was found, for every host that was asked.
    std::string reasons{};
    /// Error of a connection that could not be made; a TLS error, if there is one.
    boost::system::error_code cause{};
};

/// Finds the server that accepts writes. Asks all hosts at the same time, and the members that they name, each on its
/// own connection. The first primary that answers is the result, so a host that does not respond causes no delay. While
/// it is awaited, the members that have answered are asked again, because an election may have ended meanwhile.
///
/// The connections are not authenticated, because servers answer `hello` without authentication.
///
/// Thread safety: none; belongs to the strand.
class server_discovery final : public std::enable_shared_from_this<server_discovery>
{
public:
    using handler = std::function<void(discovery_result)>;

    server_discovery(const asio::any_io_executor& strand, discovery_params params);
    ~server_discovery();
    server_discovery(const server_discovery&) = delete;
    server_discovery& operator=(const server_discovery&) = delete;

    /// Must be called once. `on_result` is not called if this object is destroyed before the end. The answer of each
    /// host is awaited for its `connect_timeout`, counted from the time at which the host became known.
    /// \param on_result called once, on the strand and never from inside of this call; not called after `close`
    void start(handler on_result);
    /// Ends the discovery. `on_result` is not called any more.
    void close();

private:
    class hello_command;
    struct asked_host
    {
        destination at;
        std::shared_ptr<connection_pool> pool;
        /// The question in progress, until its result was processed.
        std::shared_ptr<hello_command> command{};
        /// Why the host is not the primary, once it has answered.
        std::string reason{};
        /// Error of the connection, if the last question was not answered.
        boost::system::error_code cause{};
        /// The first question was answered, or has failed.
        bool has_result = false;
        /// A question was answered.
        bool has_replied = false;
        bool is_unsuitable = false;
    };

    void ask(destination address);
    void repeat_hello();
    void send_hello(std::size_t index);
    void answered(std::size_t index);
    [[nodiscard]] bool is_primary(asked_host& host, const hello& hello_reply) const;
    [[nodiscard]] discovery_result not_found() const;
    void end(discovery_result found);

    const asio::any_io_executor strand_;
    const discovery_params params_;
    handler on_result_;
    std::vector<asked_host> hosts_;
    lease_timer next_question_;
};

} // namespace colock::inline v0::mongo::detail
