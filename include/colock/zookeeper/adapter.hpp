// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::zookeeper {

/// How the nodes of locks are called.
enum class layout : unsigned char
{
    /// `chroot/bucket/key/`, with owner data; exclusive, shared and semaphore locks.
    standard,
    /// `chroot/key/`, with the names of Curator's InterProcessMutex: its users and ours stand in one line. kazoo joins
    /// that line only with `extra_lock_patterns=["-lock-"]`; a lock of kazoo's without it is granted while others hold
    /// the key. Exclusive locks only.
    curator_mutex,
    /// The same of Curator's InterProcessReadWriteLock. No semaphores.
    curator_read_write,
};

/// Who may do what with the nodes that we create.
struct access_right
{
    /// The server's: "world", "auth", "digest", "ip", ...
    std::string scheme = "world";
    std::string id = "anyone";
    /// The sum of those that are granted.
    enum : unsigned
    {
        read = 1,
        write = 2,
        create = 4,
        remove = 8,
        admin = 16,
        all = 31,
    };
    unsigned permissions = all;

    friend bool operator==(const access_right&, const access_right&) = default;
};

/// Checked by make_adapter.
struct options
{
    /// `zookeeper://[user:password@]host[:port][,host[:port]]...[/chroot]`, port 2181, chroot `/colock`, which is made
    /// when it is missing. One chroot follows all hosts. User, password and chroot are percent-decoded; a ',' in them
    /// is written `%2C`. User and password are told to the server as digest credentials, over a connection that is not
    /// encrypted.
    std::string url = "zookeeper://127.0.0.1:2181";
    zookeeper::layout layout = zookeeper::layout::standard;
    /// In place of those in the URL.
    std::string user{};
    std::string password{};
    /// Of every node that we create. Default: all to the user, or to everybody where there is none. Whoever takes part
    /// needs all but admin. The right to read should not go further: a session's password follows from what a reader
    /// sees of its nodes.
    std::vector<access_right> access{};
    /// How long the server keeps what a process holds that it does not hear of any more. The server may decide on
    /// another, and that counts. Range: 1 s to 1 h.
    std::chrono::milliseconds session_timeout{15'000};
    /// The smallest session timeout that any server of the ensemble may grant, which is at most the smallest
    /// `maxSessionTimeout` of its members. All leases are counted by it. A server shortens a session as soon as it
    /// receives the request to resume it, and its answer may be lost. Set this option if members have different limits;
    /// without it two holders are possible. Default: the smallest timeout that this adapter was granted so far, which
    /// is enough if all members have the same limits. Range: 100 ms to 1 h.
    std::optional<std::chrono::milliseconds> smallest_session_timeout{};
    /// The servers' `tickTime`. Leases count on it: it must not be shorter than the servers'. Default: 2 s, or half the
    /// session timeout that leases count on if that is less. Range: 1 ms to 1 h.
    std::optional<std::chrono::milliseconds> server_tick{};
    /// How long an operation may take until it fails: with `errc::unavailable` if it was certainly not sent, else with
    /// `errc::outcome_unknown`. Range: 10 ms to 1 h.
    std::chrono::milliseconds operation_timeout{5000};
    /// How long a session is kept in which nothing is held or asked for. 0: not at all; `milliseconds::max()`: until it
    /// is told to close or the adapter dies. An `io_context` does not run out of work while a session is open.
    std::chrono::milliseconds idle_timeout{10'000};
};

/// Locks on a ZooKeeper ensemble (3.6 or later), or on one server.
///
/// Fair over all processes: who asks first is granted first, for each locker's own waiters in their order. Exclusive,
/// shared and semaphore locks with and without ttl, with fences; waiters are woken by the release. Does no I/O:
/// connects on first use, with one session that all its locks live in, and makes a new one when that has expired or the
/// servers have lost their history.
///
/// Two holders are excluded as long as the servers' clocks run as fast as ours within a hundredth, and all members have
/// the same limits of session timeouts or `smallest_session_timeout` is set: a lease ends here before the server can
/// give its lock to another. The server ends no ttl; a crashed holder's lock is free after the session's timeout.
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for a URL or options that cannot be used; its message holds no
/// credential.
[[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings = {});

} // namespace colock::zookeeper
