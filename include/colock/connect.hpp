// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string_view>

namespace colock {

/// An adapter for whatever a URL names, with that backend's default options:
/// - `memory:` locks within this adapter
/// - `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://`, `rediss+sentinel://`: see redis::options::url
/// - `redis+quorum://[[user]:password@]host[:port],host[:port],host[:port][/database]`: a quorum over these masters;
/// with
///   `rediss+quorum` over TLS
/// - `zookeeper://`: see zookeeper::options::url
/// - `mongodb://`: see mongo::options::url
///
/// Does no I/O.
///
/// Thread safety: may be called from any thread.
/// \throws validation_error `invalid_options` for a scheme that is unknown or whose backend this build has not, and for
///     a URL that its backend cannot use. The message says what to do, and repeats nothing of the URL: it may hold a
///     password.
[[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, std::string_view url);

} // namespace colock
