// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/redis/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace colock::inline v0::redis::detail {

/// Makes the adapter of one master of a quorum. It refuses a node of a cluster, whose slots may move to another server.
/// \param settings the URL has no query
/// \throws validation_error see `make_adapter`
[[nodiscard]] std::shared_ptr<adapter> make_quorum_node(const asio::any_io_executor& executor, const options& settings);

} // namespace colock::inline v0::redis::detail
