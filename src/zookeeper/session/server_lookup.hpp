// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/connection_failure.hpp"
#include "zookeeper/url.hpp"

#include <colock/spi/completion.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::zookeeper::detail {

/// Resolves the addresses of servers.
///
/// Thread safety: none.
class server_lookup
{
public:
    struct result
    {
        std::vector<asio::ip::tcp::endpoint> servers{};
        /// Why a name could not be resolved.
        detail::connection_failure connection_failure{};
    };

    explicit server_lookup(const asio::any_io_executor& executor);

    /// Completes later, with all addresses that were found. Their order is random, so that not all clients begin with
    /// the same server.
    void find(const std::vector<endpoint>& hosts, completion<result> done);
    /// Completes only if the addresses differ from those that were found before.
    void find_others(const std::vector<endpoint>& hosts, completion<result> done);
    void cancel() { resolver_.cancel(); }

private:
    struct known_servers;

    const std::shared_ptr<known_servers> previous_;
    asio::ip::basic_resolver<asio::ip::tcp, asio::any_io_executor> resolver_;
};

} // namespace colock::inline v0::zookeeper::detail
