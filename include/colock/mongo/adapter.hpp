// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/connect.hpp>
#include <colock/detail/async_functions.hpp>
#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/tls.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace colock::inline v0::mongo {

/// Options of the MongoDB adapter. make_adapter checks them.
///
/// The query of `url` can give every option except `url`, `user` and `password`, each by the name of its member:
/// `mongodb://host/?replicaSet=rs0&connect_timeout=500ms`. See colock::make_adapter for the form of the values. An
/// option that is given in the URL and in the struct must have the same value in both. A member that has its default
/// counts as not given.
struct options
{
    /// `mongodb://[user:password@]host[:port][,host[:port]]...[/database][?parameters]`. The default port is 27017.
    /// Several hosts are members of one replica set. All names are percent-decoded; a ',' in the user, password or
    /// database is written `%2C`. Parameters, each at most once:
    /// - `replicaSet`: the replica set name that every member must have
    /// - `directConnection=true`: connects only to the host in the URL, even if that host names other members
    /// - `authSource`: the database in which the user is defined; default: the database of the path, else `admin`.
    ///   Always `$external` with `PLAIN` and `MONGODB-X509`
    /// - `authMechanism`: `SCRAM-SHA-256`, `SCRAM-SHA-1`, `PLAIN` or `MONGODB-X509`; default: the stronger SCRAM
    ///   mechanism that the server supports for the user. `PLAIN` (LDAP) requires `tls=true`. `MONGODB-X509` requires a
    ///   client certificate, whose subject is the user, and no password. All other mechanisms are rejected, because
    ///   they block the thread
    /// - `tls=true`, `tlsCAFile`, `tlsCertificateKeyFile`: see `tls`
    /// - `w=majority`, `appName`, `retryWrites`, `retryReads`: accepted, without effect
    ///
    /// The options below can also be given as parameters. All other parameters are rejected, and so is
    /// `mongodb+srv://`.
    std::string url = "mongodb://127.0.0.1:27017";
    /// Name of the database. Default: the database in the path of the URL, unless that is `admin`, `local` or `config`;
    /// else `colock`.
    std::string database{};
    /// Name of the collection. At most 120 bytes, without `$` or NUL, and without the prefix `system.` of the server's
    /// own collections. Only colock should use the collection.
    ///
    /// Documents of other programs are not changed: an operation on the key of such a document fails with
    /// `errc::misconfigured_backend`. Every operation fails with this error if the collection is capped, a view or a
    /// time series. The same is true if the collection has a collation, a unique index other than that of `_id`, or a
    /// validator that rejects colock's documents.
    std::string collection = "locks";
    /// User name in UTF-8. If the URL also contains a user, it must be the same.
    std::string user{};
    /// Password in UTF-8. If the URL also contains a password, it must be the same.
    std::string password{};
    /// Used only with `tls=true`. If `tlsCAFile` or `tlsCertificateKeyFile` also names a file, it must be the same
    /// file. The host to be verified is the host in the URL, or the host name that the replica set reports for its
    /// primary.
    tls_options tls{};
    /// Maximum duration of an operation. After it, an operation fails with `errc::unavailable` if it was certainly not
    /// sent, else with `errc::outcome_unknown`. Also the time that a write may wait for a majority. Range: 10 ms to 1
    /// h.
    std::chrono::milliseconds operation_timeout{5000};
    /// Maximum duration of one attempt to connect to one server. Includes the lookup of the name, TCP, TLS and the
    /// answer to `hello`. All known servers are asked at the same time. Range: 10 ms to 1 h.
    std::chrono::milliseconds connect_timeout{2000};
    /// How long an unused connection is kept open. 0: it is closed at once. `milliseconds::max()`: it is kept until the
    /// adapter is closed or destroyed. `io_context::run()` does not return while a connection is open.
    std::chrono::milliseconds idle_timeout{10'000};
    /// Interval at which a waiter tries again if it cannot receive release events: the server is not a member of a
    /// replica set, or the user has no permission for change streams. Range: 1 ms to 1 h.
    std::chrono::milliseconds poll_interval{250};
    /// Maximum number of connections for commands. One more connection is used while a caller waits for a lock. Range:
    /// 1 to 64.
    std::size_t connections = 8;
    /// How long `purge` keeps a document without a holder. The document stores the last fence of its key. Range: 1 min
    /// to 10 years.
    std::chrono::milliseconds purge_after{std::chrono::hours(24)};
    /// Maximum time by which a server's clock may get ahead while a lease lasts. A clock gets ahead by a forward step,
    /// or because a new primary's clock is ahead of the previous primary's. The holder ends every lease earlier by this
    /// value. Two holders are possible if a clock gets further ahead. A clock that falls behind only delays an expiry.
    ///
    /// Default: a tenth of the ttl, at most 250 ms; for example, 10 ms at a ttl of 100 ms. An explicit value is used in
    /// full, and a ttl below four times the value is rejected with `errc::invalid_ttl`. 0 states that clocks never get
    /// ahead. Range: 0 to 1 h.
    std::optional<std::chrono::milliseconds> max_clock_lead{};
};

/// How waiters are notified of a release.
enum class waiting_by : unsigned char
{
    /// No caller waits, or the method is not known yet.
    nothing,
    /// A change stream reports each release.
    change_stream,
    /// Each waiter tries again at intervals of `options::poll_interval`.
    poll,
};

/// Makes an adapter that stores the locks in one collection of a replica set or of a single server (MongoDB 5.0 or
/// later).
///
/// Supports exclusive, shared and semaphore locks with and without ttl, and fencing tokens. The server's clock decides
/// which locks have expired. Every write waits for a majority of the members. This function does no I/O: the adapter
/// connects to the primary on first use, and finds the new primary when the old one steps down.
///
/// Two holders are impossible under two conditions. No write is lost that a majority has confirmed. No server's clock
/// gets ahead by more than `options::max_clock_lead` during a lease. A clock gets ahead by a step, or because a new
/// primary's clock is ahead. A clock that is behind never leads to two holders.
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for an invalid URL or invalid options. The message contains no
///     credentials.
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, options settings = {});

/// Creates the indexes that speed up `list` by group and `purge`, if they do not exist. The indexes are optional: they
/// only matter for the speed in a collection with many locks.
///
/// \throws colock::error the errors of any operation
/// \throws validation_error `invalid_options`: `backend` is null or not an adapter of colock::mongo::make_adapter
///
/// Cancellation: not supported; the function ends within the operation timeout.
COLOCK_EXPORT [[nodiscard]] asio::awaitable<void> create_indexes(std::shared_ptr<adapter> backend);
/// `void(error_code)`. `backend` must not be null: its executor is the default executor of the handler.
template <colock::detail::token_or_handler<void(error_code)> CompletionToken = default_token>
auto async_create_indexes(std::shared_ptr<adapter> backend, CompletionToken&& completion_token = CompletionToken())
{
    auto executor = backend->executor();
    return colock::detail::async_coroutine<void>(
        std::move(executor), [backend = std::move(backend)] { return create_indexes(backend); },
        std::forward<CompletionToken>(completion_token));
}

/// Returns how waiters of the adapter are currently notified of a release.
/// \throws validation_error `invalid_options`: `backend` is not an adapter of colock::mongo::make_adapter
///
/// Thread safety: safe.
COLOCK_EXPORT [[nodiscard]] waiting_by waiting(const adapter& backend);

/// MongoDB for colock::make_adapter, which makes an adapter from a URL.
COLOCK_EXPORT extern const url_backend by_url;

} // namespace colock::inline v0::mongo
