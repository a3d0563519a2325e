// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include <colock/testing/adapter_contract.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <memory>
#include <string>

#include <unistd.h>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

/// Each test case has its own root folder on the shared server.
adapter_maker begin(asio::io_context& io)
{
    static int cases = 0;
    const auto url = testing::zookeeper_url(testing::shared_zookeeper()) + "/colock-contract-" +
                     std::to_string(::getpid()) + '-' + std::to_string(++cases);
    return [url, &io] {
        return zookeeper::make_adapter(io.get_executor(),
            {.url = url, .session_timeout = 6s, .server_tick = 500ms, .operation_timeout = 10s, .idle_timeout = 100ms});
    };
}

const registration zookeeper_backend({
    .name = "zookeeper",
    .capabilities = testing::zookeeper_capabilities,
    .make_environment = in_real_time(begin),
});

} // namespace

} // namespace colock::contract
