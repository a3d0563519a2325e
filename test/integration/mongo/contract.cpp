// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include <colock/mongo/adapter.hpp>
#include <colock/testing/adapter_contract.hpp>

#include <memory>
#include <string>

#include <unistd.h>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

/// Each test case has its own collection on the server that all tests share.
adapter_maker begin(asio::io_context& io)
{
    static int cases = 0;
    const auto collection = "contract-" + std::to_string(::getpid()) + '-' + std::to_string(++cases);
    return [collection, &io] {
        return mongo::make_adapter(io.get_executor(), {.url = testing::mongodb_url(testing::shared_mongodb()),
                                                          .collection = collection,
                                                          .operation_timeout = 10s,
                                                          .idle_timeout = 100ms});
    };
}

const registration mongo_backend({
    .name = "mongo",
    .capabilities = testing::mongodb_capabilities,
    .make_environment = in_real_time(begin),
    .skip_reason = testing::missing_mongodb,
});

} // namespace

} // namespace colock::contract
