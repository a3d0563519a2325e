// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/connect.hpp>
#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/completion.hpp>
#include <colock/spi/outcome.hpp>
#include <colock/tls.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::redis {

/// Format in which a lock is stored.
enum class layout : unsigned char
{
    /// Stores token and owner data. Supports shared locks and fencing tokens.
    standard,
    /// Stores the token as the value of the key, as libraries do that use `SET key token NX PX ttl`. Processes that use
    /// such a library and processes that use colock exclude each other on the same keys.
    ///
    /// Supports exclusive locks only, without fencing tokens and owner data. Such libraries do not announce a release,
    /// so a waiter also polls. Keys that begin with `{colock}#`, with or without the prefix, are rejected with
    /// `errc::invalid_key`.
    plain,
};

/// A user and a password that a program has obtained for one connection, for example a token of a cloud service.
struct credentials
{
    /// Empty: the user `default`.
    std::string user{};
    /// Password or token. If it is empty, there are no credentials (`errc::access_denied`).
    std::string password{};
    /// When the server stops accepting them. A connection that is open then needs new ones before. Default: never.
    std::chrono::system_clock::time_point valid_until = std::chrono::system_clock::time_point::max();
    /// Why there are none. `errc::access_denied` ends the operations that wait for the connection; with any other code
    /// they fail with `errc::unavailable`, and the attempt to connect is repeated.
    failure_ptr error{};
};

/// Options of the Redis adapter and of a quorum. make_adapter and make_quorum check them.
///
/// The query of `url` can give every option except `url`, `user`, `password` and `credentials`, each by the name of its
/// member: `redis://host?connect_timeout=500ms&tls.ca_file=/etc/ca.pem`. See colock::make_adapter for the form of the
/// values. An option that is given in the URL and in the struct must have the same value in both. A member that has its
/// default counts as not given.
struct options
{
    /// One of
    /// - `redis://[[user]:password@]host[:port][/database]`; default port 6379, default database 0
    /// - `rediss://...`: the same over TLS
    /// - `redis+unix:///path/to/socket[?db=database]`; user and password are given by the members
    /// - `redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/master[/database]`; default port 26379. User
    ///   and password are those of the master. With `rediss+sentinel://`, the connections to the master and the
    ///   Sentinels use TLS.
    /// - `redis+cluster://[[user]:password@]host[:port][,host[:port]...]`: the masters of a Redis Cluster, which are
    ///   found by asking one of the named nodes; default port 6379. User and password are those of each node. With
    ///   `rediss+cluster://`, all connections use TLS.
    ///
    /// User, password and socket path are percent-decoded.
    std::string url = "redis://127.0.0.1:6379";
    /// Prefix of the name of every key. Default: `{colock}:`; `colock:` with `redis+cluster://`; nothing with
    /// `layout::plain`. In the standard layout it must end with a colon. Braces keep all keys in one slot of a cluster,
    /// and so on one master. At most 128 bytes, no NUL.
    std::optional<std::string> prefix{};
    /// Used only with `redis+cluster://`, if the nodes of the cluster have other addresses for this program than for
    /// each other: containers, NAT. Each key is an address `host:port` that the cluster reports, and its value the
    /// address to connect to. An address without an entry is used as it is. In a URL, entries are separated by commas:
    /// `address_map=10.0.0.1:6379=localhost:7000,10.0.0.2:6379=localhost:7001`.
    std::map<std::string, std::string> address_map{};
    /// Format in which the locks are stored. All processes must use the same layout.
    redis::layout layout = redis::layout::standard;
    /// User name. If the URL also contains a user, it must be the same.
    std::string user{};
    /// Password. If the URL also contains a password, it must be the same.
    std::string password{};
    /// Gives the credentials of each connection to a server with locks, instead of `user` and `password`. Use it if
    /// they change while the program runs: tokens of AWS (15 minutes), Google or Azure (one hour), secrets that are
    /// rotated.
    ///
    /// Called on the adapter's strand before each connection, and again on an open connection after four fifths of the
    /// time until `credentials::valid_until`, at the earliest after a second. The new credentials are sent by AUTH. It
    /// must not block: it starts the work and returns. The completion may be called from any thread, once. If it is not
    /// called within `connect_timeout`, the attempt fails with `errc::unavailable`, as it does if the function throws.
    /// If the renewal fails, the observer receives a `warning`, and it is tried again until the server closes the
    /// connection. The function must be usable until the adapter has been destroyed.
    std::function<void(completion<redis::credentials>)> credentials{};
    /// User for the Sentinels, if they require authentication. Needs `sentinel_password`, and a URL with Sentinels.
    std::string sentinel_user{};
    /// Password for the Sentinels, if they require authentication. Needs a URL with Sentinels.
    std::string sentinel_password{};
    /// Used only with `rediss:`. The host to be verified is the host in the URL, or the host that Sentinel or the
    /// cluster has reported. `tls_options::server_name` replaces it for all servers: a cluster may report addresses
    /// while the certificates contain a name.
    tls_options tls{};
    /// Maximum duration of an operation. After it, an operation fails with `errc::unavailable` if it was certainly not
    /// sent, else with `errc::outcome_unknown`. For a quorum, the timeout applies to each node. Default: 5 s; 500 ms
    /// for a quorum. Range: 10 ms to 1 h.
    std::optional<std::chrono::milliseconds> operation_timeout{};
    /// Maximum duration of one attempt to connect to one server, from the lookup of its name until it can be used, or
    /// until one Sentinel has answered. Range: 10 ms to 1 h.
    std::chrono::milliseconds connect_timeout{2000};
    /// How long an unused connection is kept open. 0: it is closed at once. `milliseconds::max()`: it is kept until the
    /// adapter is closed or destroyed. `io_context::run()` does not return while a connection is open.
    std::chrono::milliseconds idle_timeout{10'000};
    /// Interval after which a server that sends nothing is probed. The connection is given up after two intervals
    /// without an answer. Does not limit an attempt to connect. Range: 10 ms to 1 h.
    std::chrono::milliseconds health_interval{500};
    /// Interval at which a waiter tries again if it may miss releases: in the plain layout, because other libraries
    /// announce no release, or if the user has no permission to subscribe. Range: 1 ms to 1 h.
    std::chrono::milliseconds poll_interval{250};
    /// Number of replicas that must confirm each grant and each extension, by `WAIT`. A failover to one of them then
    /// does not lose the lock; with more replicas than that, another one may be promoted. If too few confirm it within
    /// `replica_timeout`, a grant is released and counts as a failed attempt (`errc::unavailable`), and an extension
    /// fails with `errc::outcome_unknown`. Grants and extensions that are sent together wait once. Needs the right
    /// `+wait`. Default: 0, the answer does not wait for replicas. Range: 0 to 100.
    std::size_t replicas = 0;
    /// See `replicas`. Requests that follow a grant on the same connection wait, too. Range: 1 ms to 1 h; with
    /// `replicas`, less than `health_interval` and `operation_timeout`.
    std::chrono::milliseconds replica_timeout{100};
    /// Maximum time by which a server's clock may get ahead while a lease lasts. A clock gets ahead by a forward step,
    /// or because the clock of a promoted replica is ahead of its master's. The holder ends every lease earlier by this
    /// value. Two holders are possible if a clock gets further ahead. A clock that falls behind only delays an expiry.
    ///
    /// An explicit value is used in full on every server, and a ttl below four times the value is rejected with
    /// `errc::invalid_ttl`. 0 states that clocks never get ahead. Range: 0 to 1 h.
    ///
    /// Default if another server may take over: a tenth of the ttl, at most 250 ms; for example, 10 ms at a ttl of 100
    /// ms. Another server may take over if the URL names Sentinels or a cluster, or if INFO has shown replicas or was
    /// refused when a connection was established. Default otherwise: 0. If a first replica is added later, it is
    /// noticed when the next connection is established.
    std::optional<std::chrono::milliseconds> max_clock_lead{};
};

/// Makes an adapter that stores the locks on one Redis server (6.2 or later), on the master that a group of Sentinels
/// reports, or on the masters of a Redis Cluster.
///
/// Supports exclusive, shared and semaphore locks with and without ttl, and fencing tokens. A release wakes the
/// waiters. This function does no I/O: the adapter connects on first use. It uses one connection for commands and,
/// while a caller waits, one connection for messages. Both belong to the adapter, which reconnects automatically.
///
/// Two holders are impossible as long as the server keeps its memory, and no clock gets ahead by more than
/// `options::max_clock_lead` during a lease. A clock gets ahead by a step, or because a promoted replica's clock is
/// ahead.
///
/// On a cluster, the slot of the key decides which master has the lock; the hash tag of a key decides its slot, as for
/// every client. `locker::acquire_all` acquires the locks one after another, and there are no groups by their id. The
/// fences of a key grow while the masters keep their data; the fences of different keys are not comparable. If a master
/// is cut off from the others and replaced, the locks that it granted meanwhile, for up to `cluster-node-timeout`, may
/// be granted again.
///
/// A lock can be lost by eviction, or by a failover to a replica that lags behind. It can also be lost by a restart,
/// unless the server has an append-only file that is synced at every write. A master that is cut off may grant locks
/// that its successor also grants. Risks that can be detected when a connection is established are reported to the
/// observer (`warning`).
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for an invalid URL or invalid options. The message contains no
///     credentials.
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, options settings = {});

/// Makes an adapter for exclusive locks on several independent masters. A lock is granted if a majority of the masters
/// grants it within the validity time. There are no fencing tokens, no shared locks, no locks without ttl and no
/// release events: a waiter polls.
///
/// Two holders are impossible as long as a majority of the masters have granted the lock and keep their memory and
/// their time. A master's clock may run faster than the local clock by one percent, and may get ahead by
/// `options::max_clock_lead` during a lease. The largest `max_clock_lead` of the masters shortens every lease.
/// Exclusion is not promised if masters lose keys (restart without an append-only file, eviction).
///
/// If a master does not answer, it may still hold its part of a lock that has ended. This part is removed in the
/// background. A part that could not be removed within its ttl, or before the last locker was shut down, is counted in
/// `adapter::unproven()`. `io_context::run()` does not return while such a removal is pending.
///
/// \param urls an odd number of masters, at least three, each as in `options::url`. Their queries may give different
///     options, except `operation_timeout` and `poll_interval`.
/// \param settings the options of every node; `url` is not used.
/// \throws validation_error see make_adapter
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_quorum(
    asio::any_io_executor executor, const std::vector<std::string>& urls, options settings = {});

/// Redis for colock::make_adapter, which makes an adapter from a URL.
COLOCK_EXPORT extern const url_backend by_url;

} // namespace colock::inline v0::redis
