// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"
#include "support/behind_faulty_proxy.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/testing/remote_contract.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

constexpr auto chroot = "/locks";

/// The keys whose requests are cut. Heartbeats do not contain them.
constexpr std::array keys{"k", "a", "b", "c"};

constexpr std::chrono::milliseconds session_timeout = 6s;

class zookeeper_behind_link final : public testing::behind_faulty_proxy<testing::zookeeper_server>
{
public:
    explicit zookeeper_behind_link(asio::io_context& io) : behind_faulty_proxy(io) { make_folders(); }

    void cut(lost_part what) override
    {
        std::vector<std::string> folders;
        for (const std::string key : keys)
            folders.push_back('/' + key);
        between().cut_at_any(std::move(folders), loss_of(what));
    }
    bool holds() override { return between().keeps("/k"); }
    std::vector<std::string> stored() override
    {
        auto nodes = testing::ephemeral_nodes(server().port());
        // The index of a group is removed with its locks.
        const auto is_index = [](const std::string& node) { return node.find("/.g/") != std::string::npos; };
        if (!std::ranges::all_of(nodes, is_index))
            std::erase_if(nodes, is_index);
        return nodes;
    }

private:
    /// Creates the folders of the keys in advance, so that no request for a folder is lost instead of the request that
    /// the test is about.
    void make_folders()
    {
        asio::io_context io;
        const locker first(
            zookeeper::make_adapter(io.get_executor(), {.url = url_of(server().port()), .idle_timeout = 0ms}));
        for (const std::string key : keys)
            testing::run_coro(io, testing::run_coro(io, first.acquire(key)).release(on_failure::raise));
    }
    static std::string url_of(std::uint16_t port) { return testing::zookeeper_url(port) + chroot; }
    std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout) override
    {
        return zookeeper::make_adapter(io().get_executor(), {.url = url_of(port),
                                                                .session_timeout = session_timeout,
                                                                .server_tick = 500ms,
                                                                .operation_timeout = timeout,
                                                                .idle_timeout = 10min});
    }
};

const remote_registration zookeeper_over_link({
    .name = "zookeeper",
    .capabilities = testing::zookeeper_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<zookeeper_behind_link>(io); },
});

} // namespace

} // namespace colock::contract
