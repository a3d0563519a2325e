// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"
#include "support/behind_faulty_proxy.hpp"

#include <colock/mongo/adapter.hpp>
#include <colock/testing/remote_contract.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

/// Returns the encoding of a key of one letter in requests and replies.
std::string in_bson(char key)
{
    return "\x02_id\0\x02\0\0\0"s + key + '\0';
}

std::vector<std::string> all_keys()
{
    std::vector<std::string> all;
    for (const char key : {'k', 'a', 'b', 'c', 'r', '0', '1', '2'})
        all.push_back(in_bson(key));
    return all;
}

class mongo_behind_link final : public testing::behind_faulty_proxy<testing::mongodb_server>
{
public:
    using behind_faulty_proxy::behind_faulty_proxy;

    void cut(lost_part what) override { between().cut_at_any(all_keys(), loss_of(what)); }
    bool holds() override { return between().keeps(in_bson('k')); }
    std::vector<std::string> stored() override { return testing::holders_at(server().port()); }

private:
    std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout) override
    {
        return mongo::make_adapter(io().get_executor(),
            {.url = testing::mongodb_url(port), .operation_timeout = timeout, .idle_timeout = 10min});
    }
};

const remote_registration mongo_over_link({
    .name = "mongo",
    .capabilities = testing::mongodb_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<mongo_behind_link>(io); },
    .skip_reason = testing::missing_mongodb,
});

} // namespace

} // namespace colock::contract
