// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include <colock/redis/adapter.hpp>
#include <colock/testing/adapter_contract.hpp>

#include <functional>
#include <memory>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

testing::redis_server& shared_server(std::size_t number = 0)
{
    static testing::redis_server servers[3];
    return servers[number];
}

using maker = std::shared_ptr<adapter> (*)(const asio::any_io_executor&);

std::function<std::unique_ptr<environment>(asio::io_context&)> make_environments(maker make)
{
    return in_real_time([make](asio::io_context& io) -> adapter_maker {
        for (std::size_t i = 0; i < 3; ++i)
            shared_server(i)({"FLUSHALL"});
        return [make, &io] { return make(io.get_executor()); };
    });
}

const registration redis_backend({
    .name = "redis",
    .capabilities = testing::redis_capabilities,
    .make_environment = make_environments([](const asio::any_io_executor& executor) {
        return redis::make_adapter(
            executor, {.url = shared_server().url(), .operation_timeout = 10s, .idle_timeout = 100ms});
    }),
});

const registration quorum_backend({
    .name = "redis_quorum",
    .capabilities = {.list = true, .tickets = true},
    .make_environment = make_environments([](const asio::any_io_executor& executor) {
        return redis::make_quorum(executor, {shared_server(0).url(), shared_server(1).url(), shared_server(2).url()},
            {.operation_timeout = 10s, .idle_timeout = 100ms, .poll_interval = 50ms});
    }),
});

} // namespace

} // namespace colock::contract
