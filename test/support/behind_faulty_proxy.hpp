// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/faulty_proxy.hpp"

#include <colock/testing/remote_contract.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace colock::testing {

/// Environment of the contract tests of a remote adapter: a server and a proxy in front of it. A derived class adds the
/// parts that depend on the backend's protocol.
template <class Server>
class behind_faulty_proxy : public contract::remote_environment
{
public:
    explicit behind_faulty_proxy(asio::io_context& io) : io_(io), between_(server_.port()) {}

    std::shared_ptr<adapter> make() override { return make_at(server_.port(), std::chrono::seconds(20)); }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        return make_at(between_.port(), timeout);
    }
    void pass_time(lease_clock::duration span) override { contract::pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return std::chrono::milliseconds(1500); }

    int cuts() const override { return between_.cuts(); }
    void hold() override { between_.hold(); }
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

protected:
    /// Implementations set a long idle timeout. An idle timer is then still armed after everything was closed, so that
    /// a test notices anything that keeps the context running.
    virtual std::shared_ptr<adapter> make_at(std::uint16_t port, std::chrono::milliseconds timeout) = 0;

    [[nodiscard]] asio::io_context& io() noexcept { return io_; }
    [[nodiscard]] Server& server() noexcept { return server_; }
    [[nodiscard]] faulty_proxy& between() noexcept { return between_; }
    static loss loss_of(contract::lost_part what)
    {
        return what == contract::lost_part::request ? loss::request : loss::reply;
    }

private:
    asio::io_context& io_;
    Server server_;
    faulty_proxy between_;
    bool serves_ = true;
};

} // namespace colock::testing
