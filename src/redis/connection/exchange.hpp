// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/server_connection.hpp"
#include "redis/pipeline/batch.hpp"

#include <functional>
#include <memory>

namespace colock::inline v0::redis::detail {

/// Returns an adapter that reads the replies to a batch into it. `on` is the connection that the batch is sent on.
[[nodiscard]] inline boost::redis::any_adapter reader_of(batch& reading, server_connection& on)
{
    using event = boost::redis::any_adapter::parse_event;
    return boost::redis::any_adapter(
        boost::redis::any_adapter::impl_t([&reading, &received_nodes = on.received_nodes()](
                                              event what, const boost::redis::resp3::node_view& node, error_code&) {
            ++received_nodes;
            if (what == event::node)
                reading.on_node(node);
            else if (what == event::done)
                reading.on_reply();
        }));
}

/// Sends commands of the client itself on one connection, without using the send queue. `reads` is called once.
void exchange(const std::shared_ptr<server_connection>& on, std::function<void(boost::redis::request&)> writes,
    std::function<void(delivery, const reply_list&)> reads);

} // namespace colock::inline v0::redis::detail
