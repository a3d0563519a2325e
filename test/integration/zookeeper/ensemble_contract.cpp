// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "ensemble.hpp"

#include <colock/testing/remote_contract.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

/// The linked adapters know only the server that is the leader at first. The others know only the other servers.
class zookeeper_with_paused_leader final : public replicated_environment
{
public:
    explicit zookeeper_with_paused_leader(asio::io_context& io) : io_(io) {}
    ~zookeeper_with_paused_leader() override { servers_[number_].resume(); }

    std::shared_ptr<adapter> make() override
    {
        return make_at(servers_.url((number_ + 1) % servers_.size, servers_.size - 1), 20s);
    }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        return make_at(servers_.url(number_, 1), timeout);
    }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 1s; }

    void pause(bool paused) override
    {
        if (paused)
            servers_[number_].pause();
        else
            servers_[number_].resume();
    }

private:
    std::shared_ptr<adapter> make_at(const std::string& url, std::chrono::milliseconds timeout)
    {
        return zookeeper::make_adapter(io_.get_executor(), {.url = url + chroot_,
                                                               .session_timeout = 6s,
                                                               .server_tick = 500ms,
                                                               .operation_timeout = timeout,
                                                               .idle_timeout = 10min});
    }
    /// Returns another name for each test case, so that nothing of an earlier one can be found.
    static std::string next_chroot()
    {
        static int count = 0;
        return "/paused" + std::to_string(++count);
    }

    asio::io_context& io_;
    testing::zookeeper_ensemble& servers_ = testing::quick_ensemble();
    const std::size_t number_ = servers_.leader();
    const std::string chroot_ = next_chroot();
};

const replicated_registration zookeeper_leader({
    .name = "zookeeper_ensemble",
    .capabilities = testing::zookeeper_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<zookeeper_with_paused_leader>(io); },
});

} // namespace

} // namespace colock::contract
