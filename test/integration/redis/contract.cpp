// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract/contract.hpp"

#include "server.hpp"

#include <colock/redis/adapter.hpp>

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <functional>

namespace colock::contract {

namespace {

testing::redis_server& shared_server(std::size_t number = 0)
{
    static testing::redis_server servers[3];
    return servers[number];
}

class redis_environment final : public environment
{
public:
    using maker = std::function<std::shared_ptr<adapter>(const asio::any_io_executor&)>;

    redis_environment(asio::io_context& io, maker make) : io_(io), make_(std::move(make))
    {
        for (std::size_t i = 0; i < 3; ++i)
            shared_server(i)({"FLUSHALL"});
    }

    std::shared_ptr<adapter> make() override { return make_(io_.get_executor()); }
    void pass_time(lease_clock::duration span) override
    {
        // What is begun gets some real time to reach a server, however slow this build is. The server counts in whole
        // milliseconds of its own clock, and the last of them still belongs to the holder.
        asio::steady_timer passed(io_, std::max<lease_clock::duration>(span + 10ms, 20ms));
        bool over = false;
        passed.async_wait([&](const boost::system::error_code&) { over = true; });
        testing::run_until(io_, [&] { return over; });
    }
    std::chrono::milliseconds short_ttl() const override { return 1500ms; }

private:
    asio::io_context& io_;
    const maker make_;
};

std::function<std::unique_ptr<environment>(asio::io_context&)> around(redis_environment::maker make)
{
    return [make = std::move(make)](asio::io_context& io) { return std::make_unique<redis_environment>(io, make); };
}

const registration redis_backend({
    .name = "redis",
    .able = {.shared = true,
        .semaphore = true,
        .no_ttl = true,
        .fifo = false,
        .fence = true,
        .list = true,
        .events = true,
        .immediate = false},
    .make_environment = around([](const asio::any_io_executor& executor) {
        return redis::make_adapter(
            executor, {.url = shared_server().url(), .operation_timeout = 10s, .idle_timeout = 100ms});
    }),
});

const registration quorum_backend({
    .name = "redis_quorum",
    .able = {.list = true},
    .make_environment = around([](const asio::any_io_executor& executor) {
        return redis::make_quorum(executor, {shared_server(0).url(), shared_server(1).url(), shared_server(2).url()},
            {.operation_timeout = 10s, .idle_timeout = 100ms, .poll_interval = 50ms});
    }),
});

} // namespace

} // namespace colock::contract
