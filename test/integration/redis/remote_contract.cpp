// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include <colock/redis/adapter.hpp>
#include <colock/remote_contract.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

constexpr auto prefix = "{colock}:";

class redis_behind_link final : public remote_environment
{
public:
    explicit redis_behind_link(asio::io_context& io) : io_(io), between_(server_.port()) {}

    std::shared_ptr<adapter> make() override { return make_at(server_.url(), 20s); }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        return make_at(between_.url(), timeout);
    }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 1500ms; }

    // Locks and the channels of those who wait for them are called alike.
    void cut(lost_part what) override
    {
        between_.cut_at_bytes(prefix, what == lost_part::request ? testing::loss::request : testing::loss::reply);
    }
    int cuts() const override { return between_.cuts(); }
    void hold() override { between_.hold(); }
    bool holds() override { return between_.keeps(prefix); }
    void hang_up() override { between_.hang_up(); }
    void deliver() override { between_.deliver(); }
    void silence(bool silent) override { between_.silence(silent); }
    void refuse(bool refuses) override { between_.refuse(refuses); }
    void serve(bool serves) override
    {
        if (serves && !serves_)
            server_.start();
        else if (!serves)
            server_.kill();
        serves_ = serves;
    }
    std::vector<std::string> stored() override
    {
        std::vector<std::string> keys;
        const auto told = server_({"KEYS", "*"});
        for (std::size_t begin = 0, end = 0; begin < told.size(); begin = end + 1) {
            end = told.find('\n', begin);
            if (auto key = told.substr(begin, end - begin); key != "{colock}#fence")
                keys.push_back(std::move(key));
        }
        return keys;
    }

private:
    std::shared_ptr<adapter> make_at(std::string url, std::chrono::milliseconds timeout)
    {
        // Whatever is still armed when all has been closed shows.
        return redis::make_adapter(
            io_.get_executor(), {.url = std::move(url), .operation_timeout = timeout, .idle_timeout = 10min});
    }

    asio::io_context& io_;
    testing::redis_server server_;
    testing::redis_relay between_;
    bool serves_ = true;
};

const remote_registration redis_backend({
    .name = "redis",
    .able = {.shared = true, .semaphore = true, .no_ttl = true, .fence = true, .list = true, .events = true},
    .make_environment = [](asio::io_context& io) { return std::make_unique<redis_behind_link>(io); },
});

} // namespace

} // namespace colock::contract
