// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/tls.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

/// A backend that a URL can name, for make_adapter: redis::by_url, zookeeper::by_url, mongo::by_url, or one of
/// your own.
struct url_backend
{
    /// The type of `make`.
    using make_function = std::shared_ptr<adapter>(
        const asio::any_io_executor& executor, std::string_view url, const connect_options& options);

    /// The schemes in lower case, without the suffix that may follow a '+'. Unused elements are empty.
    std::array<std::string_view, 2> schemes;
    /// The forms of the URLs, for error messages.
    std::string_view forms;
    /// Makes an adapter from a URL with one of the schemes, in lower case. Throws validation_error `invalid_options` if
    /// the backend rejects the URL or an option.
    make_function* make = nullptr;
};

/// Makes an adapter for the backend that the URL names:
/// - `memory:`: locks that are visible only through this adapter; see memory::options
/// - with redis::by_url: `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://`, `rediss+sentinel://`,
/// `redis+cluster://`, `rediss+cluster://`; see
///   redis::options::url
/// - with redis::by_url: `redis+quorum://[[user]:password@]host[:port],host[:port],host[:port][/database]`, a quorum of
///   these masters; `rediss+quorum://` connects over TLS; see redis::options
/// - with zookeeper::by_url: `zookeeper://`; see zookeeper::options::url
/// - with mongo::by_url: `mongodb://`; see mongo::options::url
///
/// A program links only the libraries of the backends that it passes.
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
///     - The scheme is unknown, or `backends` does not contain its backend, or contains it without `make`.
///     - The backend rejects the URL or an option, or has no such option.
///     The message says how to correct the URL. Because a URL may contain a password, the message quotes only parts of
///     it that cannot be secret, such as the name of an option or a duration that is out of range.
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, std::string_view url,
    const std::vector<url_backend>& backends = {}, connect_options options = {});

} // namespace colock::inline v0
