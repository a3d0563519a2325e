// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"
#include "support/relay.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/remote_contract.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

constexpr auto chroot = "/locks";

/// The keys of locks that are cut: in whatever concerns one, and in no beat.
constexpr std::array keys{"k", "a", "b", "c"};

constexpr std::chrono::milliseconds session_timeout = 6s;

class zookeeper_behind_link final : public remote_environment
{
public:
    explicit zookeeper_behind_link(asio::io_context& io) : io_(io), between_(server_.port()) { make_folders(); }

    std::shared_ptr<adapter> make() override { return make_at(server_.port(), 20s); }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        return make_at(between_.port(), timeout);
    }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 1500ms; }

    void cut(lost_part what) override
    {
        std::vector<std::string> folders;
        for (const std::string key : keys)
            folders.push_back('/' + key);
        between_.cut_at_any(
            std::move(folders), what == lost_part::request ? testing::loss::request : testing::loss::reply);
    }
    int cuts() const override { return between_.cuts(); }
    void hold() override { between_.hold(); }
    bool holds() override { return between_.keeps("/k"); }
    void hang_up() override { between_.hang_up(); }
    void deliver() override { between_.deliver(); }
    void silence(bool silent) override { between_.silence(silent); }
    void refuse(bool refuses) override { between_.refuse(refuses); }
    void serve(bool serves) override
    {
        if (serves && !serves_)
            server_.start();
        else if (!serves)
            server_.kill();
        serves_ = serves;
    }
    std::vector<std::string> stored() override { return testing::ephemeral_nodes(server_.port()); }

private:
    /// What the first use of a key leaves for the next: what is lost then is the request that counts.
    void make_folders()
    {
        asio::io_context io;
        const locker first(
            zookeeper::make_adapter(io.get_executor(), {.url = url_of(server_.port()), .idle_timeout = 0ms}));
        for (const std::string key : keys)
            testing::run_coro(io, testing::run_coro(io, first.acquire(key)).release(on_failure::raise));
    }
    static std::string url_of(std::uint16_t port) { return "zookeeper://127.0.0.1:" + std::to_string(port) + chroot; }
    std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout)
    {
        // Whatever is still armed when all has been closed shows.
        return zookeeper::make_adapter(io_.get_executor(), {.url = url_of(port),
                                                               .session_timeout = session_timeout,
                                                               .server_tick = 500ms,
                                                               .operation_timeout = timeout,
                                                               .idle_timeout = 10min});
    }

    asio::io_context& io_;
    testing::zookeeper_server server_;
    testing::relay between_;
    bool serves_ = true;
};

const remote_registration zookeeper_backend({
    .name = "zookeeper",
    .able = {.shared = true,
        .semaphore = true,
        .no_ttl = true,
        .fifo = true,
        .fence = true,
        .list = true,
        .events = true,
        .expires = false},
    .make_environment = [](asio::io_context& io) { return std::make_unique<zookeeper_behind_link>(io); },
});

} // namespace

} // namespace colock::contract
