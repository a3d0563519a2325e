// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>
#include <colock/tls.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace colock::mongo {

/// Checked by make_adapter.
struct options
{
    /// `mongodb://[user:password@]host[:port][,host[:port]]...[/database][?parameters]`, port 27017. Several hosts are
    /// members of one replica set. All names are percent-decoded; a ',' in the user, password or database is written
    /// `%2C`. Parameters, each at most once:
    /// - `replicaSet`: the name that every member must have
    /// - `directConnection=true`: the one host that is named, whatever it says of others
    /// - `authSource`: the database that knows the user; default: the database of the path, else `admin`; with `PLAIN`
    ///   and `MONGODB-X509` always `$external`
    /// - `authMechanism`: `SCRAM-SHA-256`, `SCRAM-SHA-1`, `PLAIN` or `MONGODB-X509`; default: the better SCRAM that the
    ///   server has for the user. `PLAIN` (LDAP) needs `tls=true`. `MONGODB-X509` needs a certificate for the client;
    ///   the user is its subject, and there is no password. All others are refused, because they block the thread
    /// - `tls=true`, `tlsCAFile`, `tlsCertificateKeyFile`: see `tls`
    /// - `w=majority`, `appName`, `retryWrites`, `retryReads`: accepted, and of no consequence
    ///
    /// Others are refused, and so is `mongodb+srv://`.
    std::string url = "mongodb://127.0.0.1:27017";
    /// Default: that of the URL's path unless it is admin, local or config; else `colock`.
    std::string database{};
    /// At most 120 bytes; without `$` or NUL, and not of the server's own, which begin with `system.`. It should be
    /// used by colock alone. Documents of other programs are not changed: an operation on the key of one fails with
    /// `errc::misconfigured_backend`. Every operation fails with this error if the collection is capped, a view or a
    /// time series, or has a collation, a unique index besides that of `_id`, or a validator that refuses colock's
    /// documents.
    std::string collection = "locks";
    /// In place of those in the URL; UTF-8.
    std::string user{};
    std::string password{};
    /// Used with `tls=true` only, beside the URL's files. The host is that of the URL, or the one by which the replica
    /// set calls its primary.
    tls_options tls{};
    /// How long an operation may take until it fails: with `errc::unavailable` if it was certainly not sent, else with
    /// `errc::outcome_unknown`. It is also how long a write may wait for a majority. Range: 10 ms to 1 h.
    std::chrono::milliseconds operation_timeout{5000};
    /// How long one attempt to find the primary and to connect to it may take. Range: 10 ms to 1 h.
    std::chrono::milliseconds connect_timeout{2000};
    /// How long connections are kept that nobody uses. 0: not at all; `milliseconds::max()`: until they are told to
    /// close or the adapter dies. An `io_context` does not run out of work while one is open.
    std::chrono::milliseconds idle_timeout{10'000};
    /// How often a waiter looks again where no release is announced: on a server that is no member of a replica set,
    /// or to a user who may not have change streams. Range: 1 ms to 1 h.
    std::chrono::milliseconds poll_interval{250};
    /// Connections for commands at most; one more while somebody waits. Range: 1 to 64.
    std::size_t connections = 8;
    /// For how long `purge` keeps a document without a holder, which keeps the fence of its key. Range: 1 min to 10
    /// years.
    std::chrono::milliseconds purge_after{std::chrono::hours(24)};
    /// Maximum time by which a server's clock may get ahead while a lease lasts: because the clock of a new primary is
    /// ahead of the last primary's, or by a forward step. The holder ends every lease earlier by this value. Two
    /// holders are possible if a clock gets further ahead; a clock that falls behind only delays an expiry. Default: a
    /// tenth of the ttl, at most 250 ms, so 10 ms at a ttl of 100 ms. An explicit value is used in full, and a ttl
    /// below four times the value is `errc::invalid_ttl`. 0 says that clocks never get ahead. Range: 0 to 1 h.
    std::optional<std::chrono::milliseconds> max_clock_lead{};
};

/// How waiters hear of a release.
enum class waiting_by : unsigned char
{
    /// Nobody waits, or it is not known yet.
    nothing,
    change_stream,
    poll,
};

/// Locks in one collection of a replica set, or of one server (MongoDB 5.0 or later).
///
/// Exclusive, shared and semaphore locks with and without ttl, with fences; the server's clock decides what has
/// expired. Every write waits for a majority of the members. Does no I/O: connects on first use, to the primary alone,
/// and finds the next one when that steps down.
///
/// Two holders are excluded while no write is lost that a majority has confirmed, and while no server's clock gets
/// further ahead than `options::max_clock_lead` while a lease lasts, by a step or because a new primary's clock is
/// ahead. A clock that is behind never leads to two holders.
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for a URL or options that cannot be used; its message holds no
/// credential.
[[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings = {});

/// Makes the indexes that `list` by group and `purge` use, unless they are there. Nothing needs them to be right, only
/// to be quick in a collection of many locks.
///
/// \param of made by make_adapter; else `std::invalid_argument`
/// \throws colock::error as an operation does
/// Cancellation: none; it ends within the operation timeout.
[[nodiscard]] asio::awaitable<void> create_indexes(std::shared_ptr<adapter> of);

/// \param of made by make_adapter; else `std::invalid_argument`
///
/// Thread safety: safe.
[[nodiscard]] waiting_by waiting(const adapter& of);

} // namespace colock::mongo
