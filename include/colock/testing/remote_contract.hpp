// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/testing/adapter_contract.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// What every adapter promises that speaks to a server, while the link to it and the server itself fail: beside the
/// adapter contract, and in the same target. A backend takes part by five faults that it can bring about on a server of
/// a test case's own:
///
///     const colock::contract::remote_registration table({
///         .name = "table",
///         .able = {.fence = true, .list = true},
///         .make_environment = [](boost::asio::io_context& io) { return std::make_unique<table_behind_link>(io); },
///     });
///
/// and gets the suite table_remote.
namespace colock::contract {

/// What a link loses, and its connection with it.
enum class lost_part : unsigned char
{
    /// The server never has it.
    request,
    /// The server has carried it out.
    reply,
};

/// A server of one test case's own, and a link to it that a test breaks. What an adapter has of `make` has a link of
/// its own, which is always well.
class remote_environment : public environment
{
public:
    /// Over the link that a test breaks; each on connections of its own.
    /// \param timeout in which each operation of its ends.
    [[nodiscard]] virtual std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) = 0;

    /// 1. The next request over the link that concerns a lock is lost, or its reply, and its connection ends. Once.
    /// What only makes or keeps a connection does not count.
    virtual void cut(lost_part what) = 0;
    /// How many have been cut so far.
    [[nodiscard]] virtual int cuts() const = 0;

    /// 2. What connections that exist now send from now on stays on its way. Later ones are not concerned.
    virtual void hold() = 0;
    /// Whether anything of a lock is on its way.
    [[nodiscard]] virtual bool holds() = 0;
    /// Ends those connections for their clients; what was said on them stays on its way.
    virtual void hang_up() = 0;
    /// The server has had it when this returns, as far as it still listens to it.
    virtual void deliver() = 0;

    /// 3. Nothing passes and nothing ends; or all goes on.
    virtual void silence(bool silent) = 0;

    /// 4. Connections end, and new ones cannot be made; or can.
    virtual void refuse(bool refuses) = 0;

    /// 5. The server is killed; or it is started again where it was. What it still knows then is its own affair.
    virtual void serve(bool serves) = 0;

    /// What the server stores of locks, of those who wait and of what was asked too late, past any adapter: a word for
    /// each. Without what stands for ever, such as a counter. While it serves.
    [[nodiscard]] virtual std::vector<std::string> stored() = 0;
};

/// `environment::pass_time` where time passes as it does.
void pass_real_time(asio::io_context& io, lease_clock::duration span);

struct remote_backend
{
    /// Letters, digits and underscores.
    std::string name;
    /// What its adapters' `capabilities()` say.
    colock::capabilities able;
    std::function<std::unique_ptr<remote_environment>(asio::io_context&)> make_environment;
    /// See `backend`.
    std::function<std::string()> missing{};
};

/// At namespace scope, once for each backend.
class remote_registration
{
public:
    explicit remote_registration(remote_backend tested);
};

} // namespace colock::contract
