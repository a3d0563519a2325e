// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/capabilities.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

/// Contract tests: test cases that every adapter must pass. The CMake target colock::adapter_contract adds them to a
/// program of Boost.Test. A backend is registered by an object at namespace scope:
///
///     const colock::contract::registration table_backend({
///         .name = "table",
///         .capabilities = {.fence = true},
///         .make_environment = colock::contract::in_real_time([](boost::asio::io_context& io) {
///             return [&io, rows = std::make_shared<table>()] { return make_table_adapter(io.get_executor(), rows); };
///         }),
///     });
///
/// The registration adds the test suites table_adapter (the adapter alone) and table_locker (the adapter with a
/// locker). Test cases for features that the backend does not have are skipped, with a message.
namespace colock::contract {

/// The store of one test case. It is initially empty.
class environment
{
public:
    environment() = default;
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    virtual ~environment() = default;

    /// Makes an adapter on the store. If the backend allows it, each call returns a new adapter with its own
    /// connections, which represents another process.
    [[nodiscard]] virtual std::shared_ptr<adapter> make() = 0;
    /// Lets time pass, both for the backend and for lease_clock, and runs the handlers that are ready.
    virtual void pass_time(lease_clock::duration span) = 0;
    /// Returns a ttl that is short enough to wait for its end in a test, and much longer than a few operations.
    [[nodiscard]] virtual std::chrono::milliseconds short_ttl() const = 0;
};

/// Makes the adapters of one test case. All use the same store, which belongs to the test case and is initially empty.
using adapter_maker = std::function<std::shared_ptr<adapter>()>;

/// Makes environments that use real time. The test cases take minutes in total.
/// \param open_store called for each test case with its context. It makes the store, and returns a function that makes
/// adapters of this store. This function may keep the address of the context.
/// \param short_ttl see environment.
[[nodiscard]] std::function<std::unique_ptr<environment>(asio::io_context&)> in_real_time(
    std::function<adapter_maker(asio::io_context&)> open_store,
    std::chrono::milliseconds short_ttl = std::chrono::milliseconds(2500));

/// A backend to be tested.
struct backend
{
    /// Name of the backend: letters, digits and underscores.
    std::string name;
    /// The `capabilities` of its adapters.
    colock::capabilities capabilities;
    /// Makes the store of one test case, which runs on this context. See in_real_time().
    std::function<std::unique_ptr<environment>(asio::io_context&)> make_environment;
    /// Returns why the backend cannot be tested on this machine, or an empty string. With a reason, all test cases are
    /// skipped and the reason is printed.
    std::function<std::string()> skip_reason{};
};

/// Registers the tests of one backend. Define one object per backend at namespace scope.
class registration
{
public:
    /// Adds the test suites of `tested`.
    explicit registration(backend tested);
};

} // namespace colock::contract
