// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/tls.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0 {

/// User, password and TLS files of a backend. Credentials do not belong in a URL, because URLs are often logged or
/// stored where others can read them.
struct connect_options
{
    /// User for the backend. Default: that in the URL.
    std::string user{};
    /// Password for the backend. Default: that in the URL.
    std::string password{};
    /// For a URL that asks for TLS. Redis and MongoDB only. Default: the options that begin with `tls.` in the URL.
    tls_options tls{};
};

/// Makes an adapter for the backend that the URL names:
/// - `memory:`: locks that are visible only through this adapter; see memory::options
/// - `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://`, `rediss+sentinel://`: see redis::options::url
/// - `redis+quorum://[[user]:password@]host[:port],host[:port],host[:port][/database]`: a quorum of these masters;
///   `rediss+quorum://` connects over TLS; see redis::options
/// - `zookeeper://`: see zookeeper::options::url
/// - `mongodb://`: see mongo::options::url
///
/// The query of the URL gives the options of the backend, each by the name of its member:
/// `redis://host?connect_timeout=500ms&prefix=app:`. A member of the member `tls` is written with a dot:
/// `tls.ca_file=/etc/ca.pem`. Each option is given at most once. Options that the URL does not give have their
/// defaults. The pages of the backends in docs/ list all options. Forms of the values:
/// - durations: a whole number with a unit, `500ms`, `2s`, `5m` or `1h`; or `max`, which is `milliseconds::max()`
/// - numbers: digits
/// - texts: percent-encoded, at least `%`, `&` and `#`; a '+' is not decoded as a space
/// - enumerations: the name of the enumerator
///
/// An option that is given in the URL and in `options` must have the same value in both.
///
/// To set the options of a backend in the program, or to set options that are not plain values, use the function of
/// that backend, such as redis::make_adapter.
///
/// Does no I/O.
///
/// Thread safety: may be called from any thread.
/// \throws validation_error `invalid_options` in these cases:
///     - The scheme is unknown, or this build does not contain the backend.
///     - The backend rejects the URL or an option, or has no such option.
///     The message says how to correct the URL. Because a URL may contain a password, the message quotes only parts of
///     it that cannot be secret, such as the name of an option or a duration that is out of range.
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, std::string_view url, connect_options options = {});

} // namespace colock::inline v0
