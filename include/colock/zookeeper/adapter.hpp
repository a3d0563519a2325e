// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/connect.hpp>
#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::zookeeper {

/// Naming scheme of the lock nodes.
enum class layout : unsigned char
{
    /// `chroot/bucket/key/`, with owner data. Supports exclusive, shared and semaphore locks.
    standard,
    /// `chroot/key/`, with the node names of Curator's InterProcessMutex. Clients of Curator and of colock share one
    /// queue. Supports exclusive locks only.
    ///
    /// kazoo respects this queue only with `extra_lock_patterns=["-lock-"]`. Without it, kazoo grants its own lock
    /// while others hold the key.
    curator_mutex,
    /// `chroot/key/`, with the node names of Curator's InterProcessReadWriteLock. Does not support semaphores.
    curator_read_write,
};

/// Access right to the nodes that colock creates (an entry of a ZooKeeper ACL).
struct access_right
{
    /// A scheme of the server: "world", "auth", "digest", "ip", ...
    std::string scheme = "world";
    /// The id within the scheme: "anyone" for "world", `user:hash` for "digest", an address for "ip".
    std::string id = "anyone";
    /// The granted permissions, combined by addition.
    enum : unsigned
    {
        /// Read a node's data and list its children.
        read = 1,
        /// Change a node's data.
        write = 2,
        /// Create children.
        create = 4,
        /// Remove children.
        remove = 8,
        /// Change access rights.
        admin = 16,
        /// All permissions.
        all = 31,
    };
    /// The permissions that this entry grants.
    unsigned permissions = all;

    friend bool operator==(const access_right&, const access_right&) = default;
};

/// Options of the ZooKeeper adapter. make_adapter checks them.
///
/// The query of `url` can give every option except `url`, `user`, `password` and `access`, each by the name of its
/// member: `zookeeper://host/locks?session_timeout=30s`. See colock::make_adapter for the form of the values. An option
/// that is given in the URL and in the struct must have the same value in both. A member that has its default counts as
/// not given.
struct options
{
    /// `zookeeper://[user:password@]host[:port][,host[:port]]...[/chroot]`. The default port is 2181, and the default
    /// chroot is `/colock`. The chroot follows the last host, applies to all of them, and is created if it does not
    /// exist. User, password and chroot are percent-decoded; a ',' in them is written `%2C`. User and password are sent
    /// as digest credentials over an unencrypted connection.
    std::string url = "zookeeper://127.0.0.1:2181";
    /// Naming scheme of the nodes. All processes must use the same layout.
    zookeeper::layout layout = zookeeper::layout::standard;
    /// User name. If the URL also contains a user, it must be the same.
    std::string user{};
    /// Password. If the URL also contains a password, it must be the same.
    std::string password{};
    /// Access rights to every node that colock creates. Default: all rights for the user, or for everybody if there is
    /// no user. Every process that takes part needs all rights except admin. Other clients should not have the right to
    /// read, because the password of a session can be derived from what a reader sees of its nodes.
    std::vector<access_right> access{};
    /// Session timeout that colock requests: after this time without contact, the server removes what the process
    /// holds. The server may choose another timeout, which then applies. Range: 1 s to 1 h.
    std::chrono::milliseconds session_timeout{15'000};
    /// The smallest session timeout that any server of the ensemble may grant. It is at most the smallest
    /// `maxSessionTimeout` of the members. All leases are measured by this timeout.
    ///
    /// A server shortens a session as soon as it receives the request to resume the session, and its answer may be
    /// lost. Set this option if the members have different limits; without it, two holders are possible. Default: the
    /// smallest timeout that this adapter has been granted so far, which is sufficient if all members have the same
    /// limits. Range: 100 ms to 1 h.
    std::optional<std::chrono::milliseconds> smallest_session_timeout{};
    /// The `tickTime` of the servers. It must not be shorter than the real value, because leases depend on it. Default:
    /// 2 s, or half the session timeout by which leases are measured if that is less. Range: 1 ms to 1 h.
    std::optional<std::chrono::milliseconds> server_tick{};
    /// Maximum duration of an operation. After it, an operation fails with `errc::unavailable` if it was certainly not
    /// sent, else with `errc::outcome_unknown`. While the session is connected, the time in which an attempt of a claim
    /// that is in the lock queue already waits to be sent does not count. Range: 10 ms to 1 h.
    std::chrono::milliseconds operation_timeout{5000};
    /// Maximum duration of one attempt to connect to one server: TCP and the server's greeting. The next server is
    /// tried then. A sixth of the session timeout applies instead if it is less, so that the session outlives several
    /// servers that do not answer. The lookup of a name does not count: other servers are tried meanwhile. Range: 10 ms
    /// to 1 h.
    std::chrono::milliseconds connect_timeout{2000};
    /// How long a session is kept open in which no lock is held or requested. 0: it is closed at once.
    /// `milliseconds::max()`: it is kept until the adapter is closed or destroyed. `io_context::run()` does not return
    /// while a session is open.
    std::chrono::milliseconds idle_timeout{10'000};
};

/// Makes an adapter that stores the locks on a ZooKeeper ensemble (3.6 or later), or on a single server.
///
/// Fair among all processes: requests are granted in the order in which they arrive, and the waiters of one locker in
/// the order of their calls. Supports exclusive, shared and semaphore locks with and without ttl, and fencing tokens. A
/// release wakes the waiters.
///
/// This function does no I/O: the adapter connects on first use, with one session to which all its locks belong. It
/// opens a new session when the old one has expired, or when the servers have lost their history.
///
/// Two holders are impossible under two conditions. The servers' clocks run as fast as the local clock within one
/// percent. All members have the same limits of session timeouts, or `smallest_session_timeout` is set. A lease then
/// ends locally before the server can grant its lock to another process.
///
/// The server does not end a lock after its ttl. The lock of a crashed holder is free after the timeout of its session.
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for an invalid URL or invalid options. The message contains no
///     credentials.
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, options settings = {});

/// ZooKeeper for colock::make_adapter, which makes an adapter from a URL.
COLOCK_EXPORT extern const url_backend by_url;

} // namespace colock::inline v0::zookeeper
