// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection_pool.hpp"
#include "mongo/driver/destination.hpp"
#include "mongo/topology/hello.hpp"

#include <colock/clock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colock::mongo::detail {

/// Whom a scout looks for.
struct discovery_params
{
    /// At least one. Whom they name is asked over the same TLS.
    std::vector<destination> hosts{};
    /// Of this replica set; empty: of any, or of none.
    std::string replica_set{};
    /// One of `hosts` itself; else whomever they name, too.
    bool direct = false;
};

/// What a scout has found.
struct discovery_result
{
    enum class kind : unsigned char
    {
        /// The primary, and all the rest of this.
        primary,
        /// Nobody who takes writes, for now.
        nobody,
        /// Servers, but none of that replica set.
        misconfigured,
    };
    kind what = kind::nobody;
    /// Without a login.
    destination at{};
    /// The server's clock, in milliseconds, when it was asked: within the time that its answer took.
    std::int64_t server_time = 0;
    lease_clock::time_point asked{};
    /// Empty: it is in none, and has no change streams.
    std::string replica_set{};
    int max_wire_version = 0;
    /// Why there is none, of every host that was asked.
    std::string why{};
    /// Of one that could not be connected to; that of TLS, if there is one.
    boost::system::error_code cause{};
};

/// Looks for the server that takes writes: asks all hosts at the same time, and those that they name, each on a
/// connection of its own. The first that says so is the one: nobody waits for a host that is mute.
///
/// Nobody is logged in for this: servers say it to everybody.
///
/// Thread safety: none; belongs to the strand.
class server_discovery final : public std::enable_shared_from_this<server_discovery>
{
public:
    using handler = std::function<void(discovery_result)>;

    server_discovery(const asio::any_io_executor& strand, discovery_params what);
    ~server_discovery();
    server_discovery(const server_discovery&) = delete;
    server_discovery& operator=(const server_discovery&) = delete;

    /// Once. Whoever destroys it before is not told.
    /// \param deadline who has not answered by then does not
    /// \param tell from the strand, once, and never from inside this call; not at all if it is closed
    void start(lease_clock::time_point deadline, handler tell);
    /// Nobody is told any more.
    void close();

private:
    class question;
    struct asked_host
    {
        destination at;
        std::shared_ptr<connection_pool> over;
        std::shared_ptr<question> what;
        /// Why it is not the one, once it has answered.
        std::string why{};
        bool of_another_set = false;
    };

    void ask(destination whom);
    void answered(std::size_t which);
    [[nodiscard]] bool is_it(asked_host& host, const hello& said) const;
    [[nodiscard]] discovery_result nobody() const;
    void end(discovery_result found);

    const asio::any_io_executor strand_;
    const discovery_params what_;
    lease_clock::time_point deadline_;
    handler tell_;
    std::vector<asked_host> asked_;
    std::size_t unanswered_ = 0;
};

} // namespace colock::mongo::detail
