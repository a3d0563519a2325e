// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cluster.hpp"
#include "integration/redis/server.hpp"
#include "support/behind_faulty_proxy.hpp"

#include <colock/redis/adapter.hpp>
#include <colock/testing/remote_contract.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

/// A cluster of one master, which has all slots.
class single_node final : public testing::redis_server
{
public:
    single_node() : redis_server({"--cluster-enabled", "yes", "--cluster-port", std::to_string(testing::free_port())})
    {
        if ((*this)({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}) != "OK")
            throw std::runtime_error("a test's node takes no slots");
        wait_until_ok();
    }
    void start()
    {
        redis_server::start();
        wait_until_ok();
    }

private:
    void wait_until_ok()
    {
        while ((*this)({"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos) {
        }
    }
};

/// The adapter is given the address of the link for the address that the node reports.
class redis_cluster_behind_link final : public testing::behind_faulty_proxy<single_node>
{
public:
    using behind_faulty_proxy::behind_faulty_proxy;

    // Keys and channels begin with the same prefix, so commands and messages are found.
    void cut(lost_part what) override { between().cut_at_bytes("colock:", loss_of(what)); }
    bool holds() override { return between().keeps("colock:"); }
    std::vector<std::string> stored() override
    {
        std::vector<std::string> keys;
        const auto reply = server()({"KEYS", "colock:*"});
        for (std::size_t begin = 0, end = 0; begin < reply.size(); begin = end + 1) {
            end = reply.find('\n', begin);
            keys.push_back(reply.substr(begin, end - begin));
        }
        return keys;
    }

private:
    std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout) override
    {
        const auto link = "127.0.0.1:" + std::to_string(port);
        return redis::make_adapter(
            io().get_executor(), {.url = "redis+cluster://" + link,
                                     .address_map = {{"127.0.0.1:" + std::to_string(server().port()), link}},
                                     .operation_timeout = timeout,
                                     .idle_timeout = 10min});
    }
};

const remote_registration redis_cluster_over_link({
    .name = "redis_cluster",
    .capabilities = testing::redis_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<redis_cluster_behind_link>(io); },
});

} // namespace

} // namespace colock::contract
