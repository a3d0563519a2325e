// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/connection_factory.hpp"
#include "redis/pipeline/reply.hpp"
#include "redis/settings.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace colock::redis::detail {

/// Asks one Sentinel after the other where the master is.
///
/// Thread safety: none; belongs to the strand. Its operations keep it alive.
class sentinel_search : public std::enable_shared_from_this<sentinel_search>
{
public:
    /// Where the master is; or why nobody could tell.
    using handler = std::function<void(const endpoint& master, const failure_ptr& why)>;

    sentinel_search(connection_factory& made_by, const settings& config, handler ended);

    /// Once.
    void start() { ask(0); }
    /// Ends it without a word.
    void stop();
    /// The same in the child of a fork.
    void disown();

private:
    void ask(std::size_t which);
    void answered(const reply_list& replies);
    void link_ended(std::size_t which, const error_code& code);
    void end(const endpoint& master, const failure_ptr& why);

    connection_factory& links_;
    const settings& config_;
    handler ended_;
    std::shared_ptr<server_connection> asked_;
    endpoint found_;
    /// What was wrong with the first that did not name the master.
    failure_ptr problem_;
};

} // namespace colock::redis::detail
