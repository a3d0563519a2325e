// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cluster.hpp"

#include <colock/redis/adapter.hpp>
#include <colock/testing/adapter_contract.hpp>

#include <memory>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

testing::redis_cluster& shared_cluster()
{
    static testing::redis_cluster servers;
    return servers;
}

const registration redis_cluster_backend({
    .name = "redis_cluster",
    .capabilities = testing::redis_capabilities,
    .make_environment = in_real_time([](asio::io_context& io) -> adapter_maker {
        for (std::size_t i = 0; i < testing::redis_cluster::masters; ++i)
            shared_cluster().node(i)({"FLUSHALL"});
        return [&io] {
            return redis::make_adapter(
                io.get_executor(), {.url = shared_cluster().url(), .operation_timeout = 10s, .idle_timeout = 100ms});
        };
    }),
});

} // namespace

} // namespace colock::contract
