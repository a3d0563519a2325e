// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/testing/adapter_contract.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Contract tests for adapters that use a server. The tests make the connection to the server and the server itself
/// fail. They belong to the same target as the adapter contract. There are six kinds of faults. The environment of a
/// backend implements five of them, on a server that belongs to one test case:
///
///     const colock::contract::remote_registration table_server({
///         .name = "table",
///         .capabilities = {.fence = true, .list = true},
///         .make_environment = [](boost::asio::io_context& io) { return std::make_unique<table_behind_link>(io); },
///     });
///
/// The registration adds the test suite table_remote. The sixth fault is for backends with several servers. It has an
/// environment of its own, `replicated_environment`, and a `replicated_registration`, which adds the test suite
/// table_replicated.
namespace colock::contract {

/// The message that a link loses. The connection ends with it.
enum class lost_part : unsigned char
{
    /// The request is lost: the server never receives it.
    request,
    /// The reply is lost: the server has carried out the request.
    reply,
};

/// The server of one test case, and a link to it that the test can break. The adapters of `make` have a separate link
/// that never fails.
class remote_environment : public environment
{
public:
    /// Makes an adapter that uses the link that the test can break. The adapter has its own connections.
    /// \param timeout the operation timeout of the adapter.
    [[nodiscard]] virtual std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) = 0;

    /// Fault 1. Loses the next request on the link that concerns a lock, or its reply, and ends the connection. Happens
    /// once. Requests that only establish or maintain a connection do not count.
    virtual void cut(lost_part part) = 0;
    /// Returns the number of messages that were lost by `cut`.
    [[nodiscard]] virtual int cuts() const = 0;

    /// Fault 2. Delays all data that clients send from now on over the existing connections. Later connections are not
    /// affected.
    virtual void hold() = 0;
    /// Returns whether delayed data contain a request that concerns a lock.
    [[nodiscard]] virtual bool holds() = 0;
    /// Closes, for the clients, the connections whose data are delayed. The delayed data are kept.
    virtual void hang_up() = 0;
    /// Delivers the delayed data. When the function returns, the server has received them, unless it has closed the
    /// connection.
    virtual void deliver() = 0;

    /// Fault 3. True: no data pass and no connection ends. False: all data pass again.
    virtual void silence(bool silent) = 0;

    /// Fault 4. True: all connections end, and new connections are refused. False: new connections are accepted again.
    virtual void refuse(bool refuses) = 0;

    /// Fault 5. False: kills the server. True: starts the server again at the same address. The data that the server
    /// keeps depend on the server.
    virtual void serve(bool serves) = 0;

    /// Returns a short description of each item that the server stores for locks, waiters and late requests, bypassing
    /// every adapter. Permanent data such as counters are not included. The server must be running.
    [[nodiscard]] virtual std::vector<std::string> stored() = 0;
};

/// The servers of one test case, which take over from each other, or which are asked together. The test can pause one
/// of them.
class replicated_environment : public environment
{
public:
    /// Makes an adapter that uses the server that `pause` pauses, if the adapter can choose a server. The adapters of
    /// `make` can use the other servers while that server is paused.
    /// \param timeout the operation timeout of the adapter.
    [[nodiscard]] virtual std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) = 0;

    /// Fault 6. True: pauses one server, as SIGSTOP does. Its connections stay open, and it executes nothing. If
    /// another server has to take over, the server that is paused is the one whose task is taken over. False: the
    /// server continues where it was paused, as after SIGCONT.
    virtual void pause(bool paused) = 0;
};

/// Implements `environment::pass_time` in real time.
void pass_real_time(asio::io_context& io, lease_clock::duration span);

/// A backend to be tested that uses a server.
struct remote_backend
{
    /// Name of the backend: letters, digits and underscores.
    std::string name;
    /// The `capabilities` of its adapters.
    colock::capabilities capabilities;
    /// Makes the server of one test case, whose client side runs on this context.
    std::function<std::unique_ptr<remote_environment>(asio::io_context&)> make_environment;
    /// Returns why the backend cannot be tested, see `backend`.
    std::function<std::string()> skip_reason{};
};

/// Registers the tests of one backend. Define one object per backend at namespace scope.
class remote_registration
{
public:
    /// Adds the test suite of `tested`.
    explicit remote_registration(remote_backend tested);
};

/// A backend to be tested that uses several servers.
struct replicated_backend
{
    /// Name of the backend: letters, digits and underscores.
    std::string name;
    /// The `capabilities()` of its adapters.
    colock::capabilities capabilities;
    /// Makes the servers of one test case, whose client side runs on this context.
    std::function<std::unique_ptr<replicated_environment>(asio::io_context&)> make_environment;
    /// Returns why the backend cannot be tested, see `backend`.
    std::function<std::string()> skip_reason{};
};

/// Registers the tests of one backend with several servers. Define one object per backend at namespace scope.
class replicated_registration
{
public:
    /// Adds the test suite of `tested`.
    explicit replicated_registration(replicated_backend tested);
};

} // namespace colock::contract
