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
#include <vector>

namespace colock::testing {

/// What adapters to MongoDB can.
inline constexpr capabilities mongodb_abilities{.shared = true,
    .semaphore = true,
    .no_ttl = true,
    .fence = true,
    .list = true,
    .events = true,
    .groups = true,
    .extends_groups = true,
    .tickets = true};

/// Why there is no server; empty: there is one.
[[nodiscard]] std::string missing_mongodb();
/// A precondition: there is a server. ctest reports the suite as skipped otherwise.
[[nodiscard]] boost::test_tools::assertion_result has_mongodb(boost::unit_test::test_unit_id suite);

/// The port of the server that tests share.
[[nodiscard]] std::uint16_t shared_mongodb();

[[nodiscard]] std::string mongodb_url(std::uint16_t port);

/// Past any adapter.
/// \throws std::runtime_error if it is refused
[[nodiscard]] mongo::detail::document ask_mongodb(
    std::uint16_t port, const std::string& database, std::string_view command);
/// The same, but a refusal is an answer, too.
/// \throws std::runtime_error if the server does not answer
[[nodiscard]] mongo::detail::document reply_of_mongodb(
    std::uint16_t port, const std::string& database, std::string_view command);
/// The keys whose locks are held there, or that a writer waits for; and will be for that long.
[[nodiscard]] std::vector<std::string> holders_at(
    std::uint16_t port, std::chrono::milliseconds lasting = std::chrono::milliseconds::zero());

[[nodiscard]] std::size_t threads_of_this_process();

/// A server of its own, in a temporary folder.
class mongodb_server
{
public:
    /// \param options of the program's, beside those of every test
    /// \param environment of the program, beside the test's own
    explicit mongodb_server(std::vector<std::string> options = {}, std::vector<std::string> environment = {});
    ~mongodb_server();
    mongodb_server(const mongodb_server&) = delete;
    mongodb_server& operator=(const mongodb_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// SIGSTOP and SIGCONT.
    void pause();
    void resume();
    /// SIGKILL.
    void kill();
    /// On the same port, with what it had on disk.
    void start();
    /// The same, with other options.
    void start(std::vector<std::string> options);

private:
    std::vector<std::string> options_;
    std::vector<std::string> environment_;
    std::uint16_t port_ = 0;
    temporary_folder folder_;
    child_process process_;
};

} // namespace colock::testing
