// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/name_lookup.hpp"
#include "zookeeper/driver/connection_failure.hpp"
#include "zookeeper/url.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::zookeeper::detail {

/// Looks up the addresses of the servers of an ensemble. A name that the name service answers late, or not at all, does
/// not delay the use of the other servers, as long as a thread of `name_lookup_pool` is free for their names.
///
/// Thread safety: none. A pending lookup keeps the object alive.
class server_lookup : public std::enable_shared_from_this<server_lookup>
{
public:
    struct result
    {
        /// All known addresses. Their order is random, so that not all clients begin with the same server.
        std::vector<asio::ip::tcp::endpoint> servers{};
        /// Why a name could not be resolved.
        detail::connection_failure connection_failure{};
    };

    server_lookup(const asio::any_io_executor& executor, const std::vector<endpoint>& hosts);

    /// Looks up all names; a name that is being looked up is not looked up again. Calls `found`, never from inside of
    /// this call, when all names are answered, or a short time after some address is known. Calls it again when an
    /// answer that comes later changes the addresses. The addresses of a name that cannot be resolved again stay.
    void find(std::function<void(result)> found);
    /// Returns whether the addresses can change: whether some host is a name.
    [[nodiscard]] bool has_names() const noexcept;
    /// Ends all lookups. `found` is not called any more.
    void cancel() noexcept;

private:
    struct host
    {
        endpoint address;
        bool is_name = true;
        std::vector<asio::ip::tcp::endpoint> endpoints{};
        /// Null while the name is not being looked up.
        std::shared_ptr<remote::name_lookup> lookup{};
    };

    [[nodiscard]] bool all_answered() const noexcept;
    void on_answer(host& server, const remote::name_result& answer);
    void report_after_delay();
    void report();

    asio::any_io_executor executor_;
    asio::steady_timer delay_;
    std::vector<host> hosts_;
    detail::connection_failure failure_{};
    std::function<void(result)> found_;
    bool has_reported_ = false;
    bool is_delayed_ = false;
};

} // namespace colock::inline v0::zookeeper::detail
