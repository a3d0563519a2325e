// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "adapters/board_adapter.hpp"
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

constexpr capabilities board_capabilities{.no_ttl = true, .fence = true, .list = true, .events = true, .several = true};

const registration board_backend({
    .name = "board",
    .capabilities = board_capabilities,
    .make_environment = in_virtual_time([](asio::io_context& io) {
        return
            [server = std::make_shared<board>(io.get_executor())] { return std::make_shared<board_adapter>(server); };
    }),
});

/// A board whose entries do not expire, like a backend whose locks end with a session only.
class lasting_board_adapter final : public board_adapter
{
public:
    using board_adapter::board_adapter;

    colock::adapter_traits traits() const noexcept override
    {
        auto result = board_adapter::traits();
        result.name = "lasting_board";
        result.capabilities.expires = false;
        return result;
    }

protected:
    lease_clock::time_point expiry_of(std::chrono::milliseconds) const override
    {
        return lease_clock::time_point::max();
    }
};

constexpr capabilities lasting_board_capabilities{
    .no_ttl = true, .fence = true, .list = true, .events = true, .several = true, .expires = false};

const registration lasting_board_backend({
    .name = "lasting_board",
    .capabilities = lasting_board_capabilities,
    .make_environment = in_virtual_time([](asio::io_context& io) {
        return [server = std::make_shared<board>(io.get_executor())] {
            return std::make_shared<lasting_board_adapter>(server);
        };
    }),
});

} // namespace

} // namespace colock::contract
