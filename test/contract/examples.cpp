// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "adapters/simulated_adapter.hpp"
#include "adapters/sqlite_adapter.hpp"
#include "adapters/table_adapter.hpp"
#include "contract/virtual_environment.hpp"
#include "support/temporary_folder.hpp"

namespace colock::contract {

namespace {

const registration table_backend({
    .name = "table",
    .capabilities = {.fence = true},
    .make_environment = in_virtual_time([](asio::io_context& io) {
        return [&io, server = std::make_shared<table>()] {
            return std::make_shared<table_adapter>(io.get_executor(), server);
        };
    }),
});

const registration sqlite_backend({
    .name = "sqlite",
    .capabilities = {.fence = true},
    .make_environment = in_virtual_time([](asio::io_context& io) {
        return [&io, folder = std::make_shared<testing::temporary_folder>()] {
            return std::make_shared<sqlite_adapter>(io.get_executor(), *folder / "locks");
        };
    }),
});

constexpr capabilities simulated_capabilities{
    .no_ttl = true, .fence = true, .list = true, .events = true, .create_all = true};

const registration simulated_backend({
    .name = "simulated",
    .capabilities = simulated_capabilities,
    .make_environment = in_virtual_time([](asio::io_context& io) {
        return [server = std::make_shared<simulated_server>(io.get_executor())] {
            return std::make_shared<simulated_adapter>(server);
        };
    }),
});

/// A server whose locks do not expire, like a backend whose locks end with a session only.
class lasting_adapter final : public simulated_adapter
{
public:
    using simulated_adapter::simulated_adapter;

    colock::adapter_traits traits() const noexcept override
    {
        auto result = simulated_adapter::traits();
        result.name = "lasting";
        result.capabilities.expires = false;
        return result;
    }

protected:
    lease_clock::time_point expiry_of(std::chrono::milliseconds) const override
    {
        return lease_clock::time_point::max();
    }
};

constexpr capabilities lasting_capabilities{
    .no_ttl = true, .fence = true, .list = true, .events = true, .create_all = true, .expires = false};

const registration lasting_backend({
    .name = "lasting",
    .capabilities = lasting_capabilities,
    .make_environment = in_virtual_time([](asio::io_context& io) {
        return [server = std::make_shared<simulated_server>(io.get_executor())] {
            return std::make_shared<lasting_adapter>(server);
        };
    }),
});

} // namespace

} // namespace colock::contract
