// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace colock::testing {

/// A port of 127.0.0.1 that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();

/// A new one, for temporary files.
[[nodiscard]] std::filesystem::path make_folder();

/// Where scripts/setup.sh puts what cannot be installed.
[[nodiscard]] std::filesystem::path cache_folder();

/// Another program, killed with its object.
class child_process
{
public:
    child_process() = default;
    /// `talk`: a socket that becomes its standard input and output; without, what it prints goes to the log too.
    explicit child_process(
        const std::vector<std::string>& command, const std::filesystem::path& log, std::optional<int> talk = {});
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    ~child_process();

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    [[nodiscard]] bool alive();
    void signal(int number) const;
    /// SIGKILL, and waits for its end.
    void kill() noexcept;

private:
    pid_t id_ = -1;
};

/// Speaks to a Redis server as an operator would, blocking.
class redis_shell
{
public:
    explicit redis_shell(std::uint16_t port);
    redis_shell(const redis_shell&) = delete;
    redis_shell& operator=(const redis_shell&) = delete;
    ~redis_shell();

    /// The reply in words: its text, a number's digits, "(nil)", an error with its leading '-', an array's items with
    /// a line each.
    std::string operator()(std::initializer_list<std::string_view> words);

private:
    std::string read_line();
    std::string read_reply();
    char read_char();

    int socket_ = -1;
    std::string buffer_;
    std::size_t at_ = 0;
};

/// A redis-server of its own, in a temporary folder.
class redis_server
{
public:
    explicit redis_server(std::vector<std::string> settings = {});
    ~redis_server();
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

    std::string operator()(std::initializer_list<std::string_view> words);

    /// SIGSTOP and SIGCONT.
    void pause();
    void resume();
    /// SIGKILL.
    void kill();
    /// On the same port.
    void start();

private:
    std::uint16_t port_;
    std::filesystem::path folder_;
    std::vector<std::string> settings_;
    child_process process_;
    std::unique_ptr<redis_shell> shell_;
};

/// A Toxiproxy between a client and one server on 127.0.0.1.
class proxy
{
public:
    explicit proxy(std::uint16_t upstream);
    ~proxy();
    proxy(const proxy&) = delete;
    proxy& operator=(const proxy&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

    /// `stream` is "upstream" (to the server) or "downstream"; `attributes` as JSON.
    void add(std::string_view name, std::string_view type, std::string_view stream, std::string_view attributes);
    void remove(std::string_view name);
    /// Refuses and cuts, or serves again.
    void enable(bool enabled);

private:
    void request(std::string_view method, std::string_view path, std::string_view body);

    std::uint16_t control_;
    std::uint16_t port_;
    std::filesystem::path log_;
    child_process process_;
};

/// What a link loses.
enum class loss : unsigned char
{
    /// A request, with its connection: the server never had it.
    request,
    /// A reply, with its connection.
    reply,
    /// Nothing but time: the reply comes when it is let go.
    time,
};

/// A link to a server on 127.0.0.1 that fails at the very byte that a test asks for, and can keep what a client has
/// sent, longer than the client lives.
class relay
{
public:
    explicit relay(std::uint16_t upstream);
    ~relay();
    relay(const relay&) = delete;
    relay& operator=(const relay&) = delete;

    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

    /// What connections that exist now send from now on is kept. Later ones are not concerned.
    void hold();
    /// Whether anything is kept.
    [[nodiscard]] bool keeps();
    /// Ends those connections for their clients, and keeps what was said on them.
    void hang_up();
    /// Delivers what was kept; returns when the server has had it.
    void deliver();

    /// The next request with `word` among its words, or its reply, is lost. Once.
    void cut_at(std::string_view word, loss what);
    /// The next `times` requests with `word` among their words are kept from the server: `reply` is their answer.
    void answer_at(std::string_view word, std::string_view reply, int times = 1);
    /// How many requests were found so far.
    [[nodiscard]] int cuts() const noexcept { return cuts_; }
    /// After a loss of time.
    void deliver_replies();
    /// Later connections lead to another server.
    void lead_to(std::uint16_t upstream);
    /// Ends all connections, and new ones at once; or serves again.
    void refuse(bool refuses);
    /// Nothing passes in either direction, but nothing ends; or all of it goes on.
    void silence(bool silent);

private:
    struct connection;
    void work();
    void pass(connection& on);
    void pass_request(connection& on, const std::string& said);

    std::uint16_t upstream_;
    std::uint16_t port_ = 0;
    int listener_ = -1;
    std::atomic<bool> stopped_{false};
    std::atomic<int> cuts_{0};
    std::mutex mutex_;
    std::vector<std::unique_ptr<connection>> connections_;
    std::string word_;
    loss lost_ = loss::request;
    std::string answer_;
    int answers_left_ = 0;
    bool refuses_ = false;
    bool silent_ = false;
    std::thread thread_;
};

} // namespace colock::testing
