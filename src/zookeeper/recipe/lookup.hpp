// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/trouble.hpp"
#include "zookeeper/url.hpp"

#include <colock/spi/completion.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::zookeeper::detail {

/// Finds the addresses of servers.
///
/// Thread safety: none.
class lookup
{
public:
    struct result
    {
        std::vector<asio::ip::tcp::endpoint> servers{};
        /// Why one was not found.
        detail::trouble trouble{};
    };

    explicit lookup(const asio::any_io_executor& executor);

    /// Ends later, with what is known of all of them, in no order: not all clients should begin with the same.
    void find(const std::vector<endpoint>& hosts, completion<result> done);
    /// Tells of addresses only if they are others than were found before.
    void find_others(const std::vector<endpoint>& hosts, completion<result> done);
    void cancel() { names_.cancel(); }

private:
    struct memory;

    const std::shared_ptr<memory> before_;
    asio::ip::basic_resolver<asio::ip::tcp, asio::any_io_executor> names_;
};

} // namespace colock::zookeeper::detail
