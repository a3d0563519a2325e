// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"
#include "support/behind_faulty_proxy.hpp"

#include <colock/redis/adapter.hpp>
#include <colock/testing/remote_contract.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

constexpr auto prefix = "{colock}:";

class redis_behind_link final : public testing::behind_faulty_proxy<testing::redis_server>
{
public:
    using behind_faulty_proxy::behind_faulty_proxy;

    // Keys and channels begin with the same prefix, so commands and messages are found.
    void cut(lost_part what) override { between().cut_at_bytes(prefix, loss_of(what)); }
    bool holds() override { return between().keeps(prefix); }
    std::vector<std::string> stored() override
    {
        std::vector<std::string> keys;
        const auto reply = server()({"KEYS", "*"});
        for (std::size_t begin = 0, end = 0; begin < reply.size(); begin = end + 1) {
            end = reply.find('\n', begin);
            if (auto key = reply.substr(begin, end - begin); key != "{colock}#fence")
                keys.push_back(std::move(key));
        }
        // The index of a group is ignored while a lock exists, because it may outlast its members.
        const auto is_index = [](const std::string& key) { return key.starts_with("{colock}#g:"); };
        if (!std::ranges::all_of(keys, is_index))
            std::erase_if(keys, is_index);
        return keys;
    }

private:
    std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout) override
    {
        return redis::make_adapter(io().get_executor(),
            {.url = "redis://127.0.0.1:" + std::to_string(port), .operation_timeout = timeout, .idle_timeout = 10min});
    }
};

const remote_registration redis_over_link({
    .name = "redis",
    .capabilities = testing::redis_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<redis_behind_link>(io); },
});

} // namespace

} // namespace colock::contract
