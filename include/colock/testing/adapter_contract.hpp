// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/capabilities.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

/// What every adapter promises, tested with the same lines for each. The CMake target colock::adapter_contract adds the
/// test cases to a program of Boost.Test; a backend takes part by describing itself at namespace scope:
///
///     const colock::contract::registration table({
///         .name = "table",
///         .able = {.fence = true},
///         .make_environment = colock::contract::in_real_time([](boost::asio::io_context& io) {
///             return [&io, rows = std::make_shared<table>()] { return make_table_adapter(io.get_executor(), rows); };
///         }),
///     });
///
/// and gets the suites table_adapter (the adapter alone) and table_locker (through a locker). Cases that need what the
/// backend is not able to are skipped, and that is said.
namespace colock::contract {

/// A store of one test case's own, empty at first.
class environment
{
public:
    environment() = default;
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    virtual ~environment() = default;

    /// An adapter on the store; where the backend can, a new one each time, with connections of its own: it stands for
    /// another process.
    [[nodiscard]] virtual std::shared_ptr<adapter> make() = 0;
    /// Lets that much of the backend's and of lease_clock's time go by, and runs what is due then.
    virtual void pass_time(lease_clock::duration span) = 0;
    /// A ttl whose end a test awaits, and which is far longer than a few operations take.
    [[nodiscard]] virtual std::chrono::milliseconds short_ttl() const = 0;
};

/// Returns the adapters of one test case, all on the same store, which is its own and empty at first.
using adapter_maker = std::function<std::shared_ptr<adapter>()>;

/// An environment in which time passes as it does: the cases take minutes together.
/// \param begin called for each test case with its context; the maker may keep the context's address.
/// \param short_ttl see environment.
[[nodiscard]] std::function<std::unique_ptr<environment>(asio::io_context&)> in_real_time(
    std::function<adapter_maker(asio::io_context&)> begin,
    std::chrono::milliseconds short_ttl = std::chrono::milliseconds(1500));

struct backend
{
    /// Letters, digits and underscores.
    std::string name;
    /// What its adapters' `capabilities()` say.
    colock::capabilities able;
    std::function<std::unique_ptr<environment>(asio::io_context&)> make_environment;
    /// Why it cannot be tested here and now; empty: it can. All is skipped then, and the reason is shown.
    std::function<std::string()> missing{};
};

/// At namespace scope, once for each backend.
class registration
{
public:
    explicit registration(backend tested);
};

} // namespace colock::contract
