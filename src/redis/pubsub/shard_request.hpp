// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A request that subscribes to sharded channels by Boost.Redis.
//
// Why: the server answers SSUBSCRIBE and SUNSUBSCRIBE by pushes. Boost.Redis 1.92 does not know that, and waits for a
// reply: neither the request nor a later one would ever end. The upstream change is in
// docs/design/redis-sharded-channels.md.
//
// How: behind its commands, the request has as many commands SUBSCRIBE without a channel. The driver expects no reply
// to these, but the server refuses each of them, so the driver gets as many replies as it expects. If the server
// refuses one of the first commands, there is a reply too many: the last one arrives as a push, unless another request
// waits for a reply and takes it. So there is one such request at a time, and it has ended when the refusals of all
// SUBSCRIBEs have arrived, as a reply or as a push. A PING in between takes a refusal, and leaves its own reply for it.
//
// When to remove: once the oldest supported Boost.Redis has the change. Until then, a driver with the change works,
// too: all refusals are pushes then.
#pragma once

#include "redis/reply.hpp"

#include <boost/redis/request.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Thread safety: none.
class shard_request
{
public:
    shard_request() = default;
    /// Adds the commands. Each channel has a command of its own, because the channels of one command have to be in one
    /// slot.
    shard_request(boost::redis::request& request, const std::vector<std::string>& cancelled,
        const std::vector<std::string>& subscribed);

    /// Counts a reply that has arrived. Returns false if the reply is a refusal for another reason than that the node
    /// does not own the slot of the channel.
    [[nodiscard]] bool accept(const reply& answer);
    /// Returns whether the next request may be sent.
    [[nodiscard]] bool is_answered() const noexcept { return awaited_count_ == 0; }

private:
    /// Number of commands SUBSCRIBE that were not refused yet.
    std::size_t awaited_count_ = 0;
};

} // namespace colock::inline v0::redis::detail
