// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string_view>

namespace colock::inline v0 {

/// Makes an adapter for the backend that the URL names, with the default options of that backend:
/// - `memory:`: locks that are visible only through this adapter
/// - `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://`, `rediss+sentinel://`: see redis::options::url
/// - `redis+quorum://[[user]:password@]host[:port],host[:port],host[:port][/database]`: a quorum of these masters;
///   `rediss+quorum://` connects over TLS
/// - `zookeeper://`: see zookeeper::options::url
/// - `mongodb://`: see mongo::options::url
///
/// Does no I/O.
///
/// Thread safety: may be called from any thread.
/// \throws validation_error `invalid_options` if the scheme is unknown, if this build does not contain the backend, or
///     if the backend rejects the URL. The message says how to correct the URL. It contains no part of the URL, because
///     a URL may contain a password.
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, std::string_view url);

} // namespace colock::inline v0
