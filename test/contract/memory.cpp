// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_clock.hpp"

#include <colock/adapter_contract.hpp>
#include <colock/memory/adapter.hpp>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

class memory_environment final : public environment
{
public:
    explicit memory_environment(asio::io_context& io) : io_(io) {}

    std::shared_ptr<adapter> make() override { return adapter_; }
    void pass_time(lease_clock::duration span) override { clock_.advance(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 10s; }

private:
    testing::virtual_clock clock_;
    asio::io_context& io_;
    const std::shared_ptr<adapter> adapter_ = memory::make_adapter(io_.get_executor());
};

const registration memory_backend({
    .name = "memory",
    .able = {.shared = true,
        .semaphore = true,
        .no_ttl = true,
        .fifo = true,
        .fence = true,
        .list = true,
        .events = true,
        .immediate = true},
    .make_environment = [](asio::io_context& io) { return std::make_unique<memory_environment>(io); },
});

} // namespace

} // namespace colock::contract
