// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <colock/spi/capabilities.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

/// Capabilities of MongoDB adapters.
inline constexpr capabilities mongodb_capabilities{.shared = true,
    .semaphore = true,
    .no_ttl = true,
    .fence = true,
    .list = true,
    .lists_fence = true,
    .events = true,
    .groups = true,
    .extends_groups = true,
    .tickets = true};

/// Returns why there is no server. Empty: there is one.
[[nodiscard]] std::string missing_mongodb();
/// A precondition: there is a server. ctest reports the suite as skipped otherwise.
[[nodiscard]] boost::test_tools::assertion_result has_mongodb(boost::unit_test::test_unit_id suite);

/// A precondition: the server is not FerretDB, which lacks something that the test needs.
class not_ferretdb
{
public:
    explicit not_ferretdb(std::string lacking) : lacking_(std::move(lacking)) {}
    [[nodiscard]] boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id test) const;

private:
    std::string lacking_;
};

/// Returns the port of the server that tests share.
[[nodiscard]] std::uint16_t shared_mongodb();

[[nodiscard]] std::string mongodb_url(std::uint16_t port);

/// Sends a command to the server directly, without an adapter.
/// \throws std::runtime_error if the server refuses the command
[[nodiscard]] mongo::detail::document ask_mongodb(
    std::uint16_t port, const std::string& database, std::string_view command);
/// Like `ask_mongodb`, but returns the reply even if the server refuses the command.
/// \throws std::runtime_error if the server does not answer
[[nodiscard]] mongo::detail::document ask_mongodb_unchecked(
    std::uint16_t port, const std::string& database, std::string_view command);
/// Returns the keys whose locks are held, or for which a writer waits, and will be so for at least `lasting`.
[[nodiscard]] std::vector<std::string> holders_at(
    std::uint16_t port, std::chrono::milliseconds lasting = std::chrono::milliseconds::zero());

[[nodiscard]] std::size_t threads_of_this_process();

/// A server for one test, in a temporary folder.
class mongodb_server
{
public:
    /// \param options options of the program, in addition to the options of every test
    /// \param environment environment variables of the program, in addition to those of the test
    explicit mongodb_server(std::vector<std::string> options = {}, std::vector<std::string> environment = {});
    ~mongodb_server();
    mongodb_server(const mongodb_server&) = delete;
    mongodb_server& operator=(const mongodb_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// Sends SIGSTOP or SIGCONT.
    void pause();
    void resume();
    /// Sends SIGKILL.
    void kill();
    /// Starts the server again, on the same port and with its data on disk.
    void start();
    /// Starts the server again, with other options.
    void start(std::vector<std::string> options);

private:
    std::vector<std::string> options_;
    std::vector<std::string> environment_;
    std::uint16_t port_ = 0;
    temporary_folder folder_;
    child_process process_;
};

} // namespace colock::testing
