// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"
#include "support/temporary_folder.hpp"

#include <colock/mongo/adapter.hpp>
#include <colock/testing/remote_contract.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ranges>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view program = "mongod";

/// The test servers of the other tests are no replica sets.
std::string missing_mongod()
{
    std::istringstream path(testing::from_environment("PATH", ""));
    for (std::string folder; std::getline(path, folder, ':');) {
        if (std::filesystem::exists(std::filesystem::path(folder) / program))
            return {};
    }
    return "there is no mongod on PATH";
}

/// A member of a replica set.
class replica_set_member
{
public:
    replica_set_member()
    {
        std::filesystem::create_directory(folder_ / "data");
        process_ = testing::child_process({std::string(program), "--replSet", "rs0", "--port", std::to_string(port_),
                                              "--dbpath", folder_ / "data", "--bind_ip", "127.0.0.1"},
            folder_ / "log");
        testing::wait_until_serving(process_, port_, "mongod did not start");
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] bool is_primary() const
    {
        const auto reply = testing::ask_mongodb(port_, "admin", R"({"hello":1})").to_json();
        return reply.find(R"("isWritablePrimary" : true)") != std::string::npos;
    }
    void signal(int number) const { process_.signal(number); }

private:
    const testing::temporary_folder folder_{};
    const std::uint16_t port_ = testing::free_port();
    testing::child_process process_{};
};

/// A replica set of three, whose primary is paused.
class replica_set final : public replicated_environment
{
public:
    explicit replica_set(asio::io_context& io) : io_(io)
    {
        std::string members;
        for (std::size_t i = 0; i < std::size(members_); ++i) {
            members += (i == 0 ? "" : ",") + (R"({"_id":)" + std::to_string(i)) + R"(,"host":")" +
                       members_[i].address() + "\"}";
            hosts_ += (i == 0 ? "" : ",") + members_[i].address();
        }
        static_cast<void>(testing::ask_mongodb(members_[0].port(), "admin",
            R"({"replSetInitiate":{"_id":"rs0","settings":{"electionTimeoutMillis":1000},"members":[)" + members +
                "]}}"));
        for (const auto limit = std::chrono::steady_clock::now() + 60s; !primary_; std::this_thread::sleep_for(10ms)) {
            if (std::chrono::steady_clock::now() > limit)
                throw std::runtime_error("the replica set has no primary");
            const auto found = std::ranges::find_if(members_, &replica_set_member::is_primary);
            primary_ = found == std::end(members_) ? nullptr : &*found;
        }
    }

    std::shared_ptr<adapter> make() override { return make_linked(20s); }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        return mongo::make_adapter(io_.get_executor(),
            {.url = "mongodb://" + hosts_ + "/?replicaSet=rs0", .operation_timeout = timeout, .idle_timeout = 10min});
    }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 2s; }

    void pause(bool paused) override { primary_->signal(paused ? SIGSTOP : SIGCONT); }

private:
    asio::io_context& io_;
    replica_set_member members_[3];
    std::string hosts_;
    const replica_set_member* primary_ = nullptr;
};

const replicated_registration mongo_replica_set({
    .name = "mongo_replica_set",
    .capabilities = testing::mongodb_capabilities,
    .make_environment = [](asio::io_context& io) { return std::make_unique<replica_set>(io); },
    .skip_reason = missing_mongod,
});

} // namespace

} // namespace colock::contract
