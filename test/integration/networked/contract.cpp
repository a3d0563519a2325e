// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "adapters/lock_server.hpp"
#include "adapters/networked_adapter.hpp"
#include "support/behind_faulty_proxy.hpp"
#include "support/driver.hpp"

#include <colock/testing/adapter_contract.hpp>
#include <colock/testing/remote_contract.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The networked adapter of the examples, alone and behind a link that fails.

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

constexpr capabilities networked_capabilities{.fence = true};

const registration networked_backend({
    .name = "networked",
    .capabilities = networked_capabilities,
    .make_environment = in_real_time(
        [](asio::io_context& io) {
            return [&io, server = std::make_shared<lock_server>()] {
                return std::make_shared<networked_adapter>(io.get_executor(), server->endpoint());
            };
        },
        1s),
});

/// A lock server that can be killed, and started again at the same port.
class restartable_server
{
public:
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    void start() { server_.emplace(port_); }
    void kill() { server_.reset(); }
    [[nodiscard]] std::vector<std::string> keys() { return server_->keys(); }

private:
    std::optional<lock_server> server_{std::in_place};
    std::uint16_t port_ = server_->endpoint().port();
};

class networked_behind_link final : public testing::behind_faulty_proxy<restartable_server>
{
public:
    using behind_faulty_proxy::behind_faulty_proxy;

    void cut(lost_part what) override
    {
        between().cut_at_any({"create ", "extend ", "release ", "check "}, loss_of(what));
    }
    bool holds() override { return between().keeps(" k"); }
    std::vector<std::string> stored() override { return server().keys(); }

private:
    std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout) override
    {
        return std::make_shared<networked_adapter>(io().get_executor(),
            asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port),
            networked_settings{.operation_timeout = timeout, .idle_timeout = 10min});
    }
};

const remote_registration networked_over_link({
    .name = "networked",
    .capabilities = networked_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<networked_behind_link>(io); },
});

BOOST_AUTO_TEST_SUITE(networked_shutdown)

BOOST_AUTO_TEST_CASE(adapter_outlives_its_context_in_each_phase_of_a_request)
{
    lock_server server;
    for (int handlers = 0; handlers < 20; ++handlers) {
        std::shared_ptr<adapter> backend;
        {
            asio::io_context io;
            backend = std::make_shared<networked_adapter>(io.get_executor(), server.endpoint());
            for (const auto* key : {"a", "b"})
                backend->start_create(testing::sent_now(testing::driver::exclusive(key, 100ms)), [](create_outcome) {});
            for (int i = 0; i < handlers; ++i)
                io.run_one_for(10ms);
        }
        BOOST_TEST(!backend->executor());
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace

} // namespace colock::contract
