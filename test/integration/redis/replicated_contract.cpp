// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "sentinel.hpp"
#include "server.hpp"

#include <colock/redis/adapter.hpp>
#include <colock/testing/remote_contract.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

void wait_until(const std::function<bool()>& reached)
{
    for (const auto limit = std::chrono::steady_clock::now() + 30s; !reached(); std::this_thread::sleep_for(10ms)) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error("the servers of a test do not replicate");
    }
}

/// A master, which is paused, a replica, and a Sentinel.
class redis_with_sentinel final : public replicated_environment
{
public:
    explicit redis_with_sentinel(asio::io_context& io) : io_(io)
    {
        replica_({"REPLICAOF", "127.0.0.1", std::to_string(master_.port())});
        wait_until(
            [&] { return replica_({"INFO", "replication"}).find("master_link_status:up") != std::string::npos; });
        sentinel_.emplace(master_.port(), 1500ms);
        wait_until([&] { return sentinel_->knows(replica_.port()); });
    }

    /// The adapter gives up the paused server early, and so uses the new master as soon as the Sentinel names it. The
    /// linked adapters then still wait for the old master to accept a connection.
    std::shared_ptr<adapter> make() override { return make_at(20s, 100ms); }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override { return make_at(timeout, 2s); }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 1s; }

    void pause(bool paused) override
    {
        if (!paused)
            return master_.resume();
        // Replication is asynchronous, so it is completed before a failover that must not lose locks.
        master_({"WAIT", "1", "0"});
        master_.pause();
    }

private:
    std::shared_ptr<adapter> make_at(std::chrono::milliseconds timeout, std::chrono::milliseconds connect_timeout)
    {
        return redis::make_adapter(io_.get_executor(), {.url = "redis+sentinel://" + sentinel_->address() + "/main",
                                                           .operation_timeout = timeout,
                                                           .connect_timeout = connect_timeout,
                                                           .idle_timeout = 10min});
    }

    asio::io_context& io_;
    testing::redis_server master_;
    testing::redis_server replica_;
    std::optional<testing::deciding_sentinel> sentinel_{};
};

const replicated_registration redis_failover({
    .name = "redis_sentinel",
    .capabilities = testing::redis_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<redis_with_sentinel>(io); },
});

/// Three masters, one of which is paused.
class redis_quorum final : public replicated_environment
{
public:
    explicit redis_quorum(asio::io_context& io) : io_(io) {}

    /// A break waits for the paused server until the operation timeout.
    std::shared_ptr<adapter> make() override { return make_linked(1s); }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        return redis::make_quorum(io_.get_executor(), {servers_[0].url(), servers_[1].url(), servers_[2].url()},
            {.operation_timeout = timeout, .idle_timeout = 10min, .poll_interval = 50ms});
    }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 1s; }

    void pause(bool paused) override
    {
        if (paused)
            servers_[0].pause();
        else
            servers_[0].resume();
    }

private:
    asio::io_context& io_;
    testing::redis_server servers_[3];
};

const replicated_registration quorum_of_masters({
    .name = "redis_quorum",
    .capabilities = {.list = true, .tickets = true},
    .make_environment = [](asio::io_context& io) { return std::make_unique<redis_quorum>(io); },
});

} // namespace

} // namespace colock::contract
