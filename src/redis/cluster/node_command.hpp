// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"

#include <functional>
#include <string>
#include <vector>

namespace colock::inline v0::redis::detail {

/// A command for one node of a cluster, whatever slots it has.
/// \param timeout zero: `options::operation_timeout`
/// \param done is called with the reply, or with the failure if there is none
[[nodiscard]] operation_ptr make_node_command(operation_client& node, std::vector<std::string> words,
    lease_clock::duration timeout, std::function<void(const reply&, failure_ptr)> done);

} // namespace colock::inline v0::redis::detail
