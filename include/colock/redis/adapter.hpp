// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>
#include <colock/tls.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::redis {

/// How a lock is stored.
enum class layout : unsigned char
{
    /// Token and owner data, shared locks, fences.
    standard,
    /// The key holds the token alone, as `SET key token NX PX ttl` libraries write it: processes that use one of those
    /// and processes that use colock exclude each other on the same keys. Exclusive locks only, no fence, no owner
    /// data. Such libraries announce no release, so a waiter also polls. Keys that begin with `{colock}#`, with the
    /// prefix or without it, are refused with `errc::invalid_key`.
    plain,
};

/// Checked by make_adapter and make_quorum.
struct options
{
    /// One of
    /// - `redis://[[user]:password@]host[:port][/database]`, port 6379, database 0
    /// - `rediss://...`: the same over TLS
    /// - `redis+unix:///path/to/socket[?db=database]`
    /// - `redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/master[/database]`, port 26379; with
    /// `rediss+`
    ///   the master and the Sentinels are spoken to over TLS. User and password are those of the master.
    ///
    /// User, password and socket path are percent-decoded.
    std::string url = "redis://127.0.0.1:6379";
    /// What the name of every key begins with. Default: `{colock}:`, or nothing with `layout::plain`. In the standard
    /// layout it ends with a colon. The braces keep all keys in one slot of a cluster. At most 128 bytes, no NUL.
    std::optional<std::string> prefix{};
    redis::layout layout = redis::layout::standard;
    /// In place of those in the URL.
    std::string user{};
    std::string password{};
    /// What the Sentinels are told, where they ask for it.
    std::string sentinel_user{};
    std::string sentinel_password{};
    /// Used with `rediss:` only. The host is that of the URL, or of the master that Sentinel named.
    tls_options tls{};
    /// How long an operation may take until it fails: with `errc::unavailable` if it was certainly not sent, else with
    /// `errc::outcome_unknown`. Of a quorum: per node, and 500 ms unless set. Range: 10 ms to 1 h.
    std::optional<std::chrono::milliseconds> operation_timeout{};
    /// How long one attempt to connect may take. Range: 10 ms to 1 h.
    std::chrono::milliseconds connect_timeout{2000};
    /// How long a connection is kept that nobody uses. 0: not at all; `milliseconds::max()`: until it is told to close
    /// or the adapter dies. An `io_context` does not run out of work while a connection is open.
    std::chrono::milliseconds idle_timeout{10'000};
    /// A silent server is asked for a sign of life this often, and given up after two of these. Range: 10 ms to 1 h.
    std::chrono::milliseconds health_interval{500};
    /// How often a waiter looks again where no release is announced: in the plain layout, and where the user may not
    /// subscribe. Range: 1 ms to 1 h.
    std::chrono::milliseconds poll_interval{250};
    /// Maximum time by which a server's clock may get ahead while a lease lasts: because the clock of a promoted
    /// replica is ahead of its master's, or by a forward step. The holder ends every lease earlier by this value. Two
    /// holders are possible if a clock gets further ahead; a clock that falls behind only delays an expiry. An explicit
    /// value is used in full on every server, and a ttl below four times the value is `errc::invalid_ttl`. 0 says that
    /// clocks never get ahead. Range: 0 to 1 h.
    ///
    /// Default where another server may take over: a tenth of the ttl, at most 250 ms, so 10 ms at a ttl of 100 ms.
    /// Another server may take over if the URL names Sentinels, or once INFO at a connect has shown replicas or was
    /// refused. Default otherwise: 0. A first replica that is added later is noticed at the next connect.
    std::optional<std::chrono::milliseconds> max_clock_lead{};
};

/// Locks on one Redis server (6.2 or later), or on the master that a group of Sentinels names.
///
/// Exclusive, shared and semaphore locks with and without ttl, with fences; waiters are woken by the release. Does no
/// I/O: connects on first use, with one connection for commands and, while somebody waits, one for messages. Both are
/// the adapter's own, and it reconnects by itself.
///
/// Two holders are excluded while the server keeps its memory, and while no clock gets further ahead than
/// `options::max_clock_lead` while a lease lasts, by a step or because a promoted replica's clock is ahead. A lock can
/// be lost by eviction, by a restart without an append-only file that is synced at every write, and by a failover to a
/// replica that lags behind. A master that is cut off grants locks that its successor grants, too. Dangers that can be
/// detected at connect are reported to the observer (`warning`).
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for a URL or options that cannot be used; its message holds no
/// credential.
[[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings = {});

/// Exclusive locks over independent masters: granted by a majority of them within the validity time. No fence, no
/// shared locks, no locks without ttl, no waking: a waiter polls.
///
/// Two holders are excluded while a majority of the masters, all of which have granted the lock, keep their memory and
/// their time. A master's clock may run faster than ours by a hundredth, and get ahead by `options::max_clock_lead`
/// while a lease lasts. The largest `max_clock_lead` of the masters shortens every lease. Not promised: exclusion when
/// masters lose keys (restart without an append-only file, eviction).
///
/// What a master that does not answer may still hold of a lock that is over is taken back in the background; what could
/// not be within its ttl, or before the last locker was shut down, counts in `adapter::unproven()`. An `io_context`
/// does not run out of work meanwhile.
///
/// \param urls an odd number of masters, at least three, each as in `options::url`.
/// \param settings for every node; `url` is not used.
/// \throws validation_error as make_adapter
[[nodiscard]] std::shared_ptr<adapter> make_quorum(
    asio::any_io_executor executor, const std::vector<std::string>& urls, options settings = {});

} // namespace colock::redis
