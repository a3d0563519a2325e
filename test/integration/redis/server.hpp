// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/faulty_proxy.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"
#include "support/temporary_folder.hpp"
#include "support/toxiproxy.hpp"

#include <colock/spi/capabilities.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

/// Capabilities of an adapter for one Redis server.
inline constexpr capabilities redis_capabilities{.shared = true,
    .semaphore = true,
    .no_ttl = true,
    .fence = true,
    .list = true,
    .events = true,
    .create_all = true,
    .groups = true,
    .extends_groups = true,
    .tickets = true};

/// Blocking client that sends commands as an operator would.
class redis_shell
{
public:
    explicit redis_shell(std::uint16_t port);
    redis_shell(const redis_shell&) = delete;
    redis_shell& operator=(const redis_shell&) = delete;
    ~redis_shell();

    /// Returns the reply as text: a string, the digits of a number, "(nil)", an error with its leading '-', or the
    /// items of an array, one per line.
    std::string operator()(std::initializer_list<std::string_view> words);

private:
    std::string read_line();
    std::string read_reply();
    char read_char();

    int socket_ = -1;
    std::string buffer_;
    std::size_t at_ = 0;
};

/// Value of another holder: a token of `digit`s, a time, and an empty description of the owner.
[[nodiscard]] inline std::string stored_holder(char digit, bool is_reader = false)
{
    return std::string(is_reader ? "s" : "") + std::string(43, digit) + std::string(3, '\0');
}

/// Runs a redis-server in a temporary folder.
class redis_server
{
public:
    /// \param environment variables that are added to the environment of the test process
    explicit redis_server(std::vector<std::string> settings = {}, std::vector<std::string> environment = {});
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

    /// Folder of the files that the server writes.
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }

    std::string operator()(std::initializer_list<std::string_view> words);

    /// Sends SIGSTOP or SIGCONT.
    void pause();
    void resume();
    /// Tells whether the server was neither paused nor killed.
    [[nodiscard]] bool is_running() const noexcept { return is_running_; }
    /// Sends SIGKILL.
    void kill();
    /// Starts the server again on the same port.
    /// \param more settings, in addition to those of the constructor
    void start(const std::vector<std::string>& more = {});
    /// Stops the server, and starts it again on another port.
    void move_to(std::uint16_t port);

private:
    std::uint16_t port_ = 0;
    temporary_folder folder_;
    std::vector<std::string> settings_;
    std::vector<std::string> environment_;
    child_process process_;
    bool is_running_ = false;
    std::unique_ptr<redis_shell> shell_;
};

class redis_toxiproxy : public toxiproxy
{
public:
    using toxiproxy::toxiproxy;

    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }
};

/// Relay that finds requests by their words.
class redis_faulty_proxy : public faulty_proxy
{
public:
    using faulty_proxy::faulty_proxy;

    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }

    /// Loses the next request with `word` among its words, or the reply to that request. Later requests are not
    /// affected.
    void cut_at(std::string_view word, loss what) { cut_at_bytes(framed(word), what); }
    /// Cuts the requests one after the other. Each cut is armed when the one before has happened.
    void cut_in_turn(std::vector<std::pair<std::string, loss>> words)
    {
        for (auto& each : words)
            each.first = framed(each.first);
        cut_at_bytes_in_turn(std::move(words));
    }
    /// Answers the next `times` requests with `word` among their words with `reply`. The server does not receive them.
    void answer_at(std::string_view word, std::string_view reply, int times = 1)
    {
        answer_at_bytes(framed(word), reply, times);
    }

private:
    static std::string framed(std::string_view word) { return "\r\n" + std::string(word) + "\r\n"; }
};

} // namespace colock::testing
