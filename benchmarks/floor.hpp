// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

/// The minimum that an acquire and a release must do behind an interface: one map operation each. The difference to
/// colock is the cost of tokens, leases, fences, queues and cancellation.
class floor_store
{
public:
    virtual ~floor_store() = default;
    [[nodiscard]] virtual boost::asio::awaitable<std::uint64_t> insert(std::string key) = 0;
    [[nodiscard]] virtual boost::asio::awaitable<bool> erase(const std::string& key) = 0;
};

[[nodiscard]] std::unique_ptr<floor_store> make_floor();

} // namespace bench
