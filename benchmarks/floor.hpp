// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

/// The least that an acquire and a release could do behind an interface: one map operation each. What a lock adds to
/// it (token, lease, fence, queue, cancellation) is its price.
class floor_store
{
public:
    virtual ~floor_store() = default;
    [[nodiscard]] virtual boost::asio::awaitable<std::uint64_t> insert(std::string key) = 0;
    [[nodiscard]] virtual boost::asio::awaitable<bool> erase(const std::string& key) = 0;
};

[[nodiscard]] std::unique_ptr<floor_store> make_floor();

} // namespace bench
