// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/connection_factory.hpp"
#include "redis/settings.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Listens to all Sentinels for the message that another server has become the master. Used while there is no
/// connection to the master.
///
/// Thread safety: none; belongs to the strand. Pending operations keep the object alive.
class sentinel_watch : public std::enable_shared_from_this<sentinel_watch>
{
public:
    /// Called with the address of the server that is not the master any more.
    using handler = std::function<void(const endpoint& old_master)>;

    sentinel_watch(connection_factory& factory, const settings& config, handler on_switch);

    /// Connects to each Sentinel that there is no connection to.
    void start();
    /// Closes the connections. The handler is not called again.
    void stop();

private:
    void connect(std::size_t index);
    void receive(const std::shared_ptr<server_connection>& connection);
    void take(const std::string& announcement) const;

    connection_factory& factory_;
    const settings& config_;
    handler handler_;
    /// One connection for each Sentinel. Null if it has ended.
    std::vector<std::shared_ptr<server_connection>> connections_;
};

} // namespace colock::inline v0::redis::detail
