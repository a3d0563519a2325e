// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract/contract.hpp"

#include "server.hpp"

#include <colock/redis/adapter.hpp>

#include <boost/asio/steady_timer.hpp>

namespace colock::contract {

namespace {

testing::redis_server& shared_server()
{
    static testing::redis_server server;
    return server;
}

class redis_environment final : public environment
{
public:
    explicit redis_environment(asio::io_context& io) : io_(io) { shared_server()({"FLUSHALL"}); }

    std::shared_ptr<adapter> make() override
    {
        return redis::make_adapter(io_.get_executor(), {.url = shared_server().url(), .idle_timeout = 100ms});
    }
    void pass_time(lease_clock::duration span) override
    {
        io_.restart();
        // With nothing to run, time passes as well.
        asio::steady_timer passed(io_, span);
        bool over = false;
        passed.async_wait([&](const boost::system::error_code&) { over = true; });
        testing::run_until(io_, [&] { return over; });
    }
    std::chrono::milliseconds short_ttl() const override { return 500ms; }

private:
    asio::io_context& io_;
};

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
    .make_environment = [](asio::io_context& io) { return std::make_unique<redis_environment>(io); },
});

} // namespace

} // namespace colock::contract
