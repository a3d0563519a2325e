// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/jump.hpp"

#include <colock/testing/adapter_contract.hpp>

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace colock::contract {

/// An environment with virtual time, for a backend that uses lease_clock: time passes at once.
class virtual_environment final : public environment
{
public:
    virtual_environment(asio::io_context& io, adapter_maker make) : io_(io), make_(std::move(make)) {}

    std::shared_ptr<adapter> make() override { return make_(); }
    void pass_time(lease_clock::duration span) override { testing::jump(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return std::chrono::seconds(10); }

private:
    testing::virtual_clock clock_;
    asio::io_context& io_;
    const adapter_maker make_;
};

/// \param open_store makes the store of a test case, and returns a function that makes adapters of this store
[[nodiscard]] inline std::function<std::unique_ptr<environment>(asio::io_context&)> in_virtual_time(
    std::function<adapter_maker(asio::io_context&)> open_store)
{
    return [open_store = std::move(open_store)](
               asio::io_context& io) { return std::make_unique<virtual_environment>(io, open_store(io)); };
}

} // namespace colock::contract
