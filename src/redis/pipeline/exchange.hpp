// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/server_connection.hpp"
#include "redis/pipeline/batch.hpp"

#include <functional>
#include <memory>

namespace colock::redis::detail {

/// Has the replies to a batch that is sent on `on` read into it.
[[nodiscard]] inline boost::redis::any_adapter reader_of(batch& reading, server_connection& on)
{
    using event = boost::redis::any_adapter::parse_event;
    return boost::redis::any_adapter(boost::redis::any_adapter::impl_t(
        [&reading, &heard = on.heard()](event what, const boost::redis::resp3::node_view& node, error_code&) {
            ++heard;
            if (what == event::node)
                reading.on_node(node);
            else if (what == event::done)
                reading.on_reply();
        }));
}

/// Some commands of the client's own on one connection, beside the queue. `reads` is called once.
void exchange(const std::shared_ptr<server_connection>& on, std::function<void(boost::redis::request&)> writes,
    std::function<void(delivery, const reply_list&)> reads);

} // namespace colock::redis::detail
