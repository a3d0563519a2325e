// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pubsub/shard_request.hpp"

#include "redis/failures.hpp"

namespace colock::inline v0::redis::detail {

shard_request::shard_request(boost::redis::request& request, const std::vector<std::string>& cancelled,
    const std::vector<std::string>& subscribed)
    : awaited_count_(cancelled.size() + subscribed.size())
{
    for (const auto& each : cancelled)
        request.push("SUNSUBSCRIBE", each);
    for (const auto& each : subscribed)
        request.push("SSUBSCRIBE", each);
    for (std::size_t i = 0; i < awaited_count_; ++i)
        request.push("SUBSCRIBE");
}

bool shard_request::accept(const reply& answer)
{
    if (!answer.is_error() || answer.text.starts_with("ERR wrong number of arguments")) {
        if (awaited_count_ > 0)
            --awaited_count_;
        return true;
    }
    return error_word(answer.text) == "MOVED";
}

} // namespace colock::inline v0::redis::detail
