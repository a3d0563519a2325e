// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/connection_factory.hpp"
#include "redis/pipeline/reply.hpp"
#include "redis/settings.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace colock::inline v0::redis::detail {

/// Asks the Sentinels, one after the other, for the address of the master.
///
/// Thread safety: none; belongs to the strand. Pending operations keep the object alive.
class sentinel_search : public std::enable_shared_from_this<sentinel_search>
{
public:
    /// Called with the address of the master, or with the reason why no Sentinel has named it.
    using handler = std::function<void(const endpoint& master, const failure_ptr& why)>;

    sentinel_search(connection_factory& factory, const settings& config, handler on_end);

    /// Starts the search. Called once.
    void start() { query(0); }
    /// Stops the search without calling the handler.
    void stop();
    /// Stops the search in the child of a fork. Closes the socket at once, because it belongs to the parent.
    void drop_after_fork();

private:
    void query(std::size_t index);
    void on_reply(std::size_t index, const reply_list& replies);
    void connection_ended(std::size_t index, const error_code& code);
    void end(const endpoint& master, const failure_ptr& why);

    connection_factory& factory_;
    const settings& config_;
    handler handler_;
    std::shared_ptr<server_connection> current_;
    endpoint found_;
    /// Problem of the first Sentinel that did not name the master.
    failure_ptr problem_;
};

} // namespace colock::inline v0::redis::detail
