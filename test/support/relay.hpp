// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace colock::testing {

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

/// What becomes of a connection while the server does not listen.
enum class no_server : unsigned char
{
    ends,
    /// Until it listens, as by a client that tries again and again.
    waits,
};

/// A link to a server on 127.0.0.1 that fails at the very byte that a test asks for, and can keep what a client has
/// sent, longer than the client lives.
class relay
{
public:
    explicit relay(std::uint16_t upstream, no_server then = no_server::ends);
    ~relay();
    relay(const relay&) = delete;
    relay& operator=(const relay&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// What connections that exist now send from now on is kept. Later ones are not concerned.
    void hold();
    /// Whether anything is kept, with `bytes` in it.
    [[nodiscard]] bool keeps(std::string_view bytes = {});
    /// Ends those connections for their clients, and keeps what was said on them.
    void hang_up();
    /// Delivers what was kept; returns when the server has had it.
    void deliver();

    /// The next request with `bytes` in it, at most 64, or its reply, is lost. Once.
    void cut_at_bytes(std::string bytes, loss what);
    /// The same, with any of these in it.
    void cut_at_any(std::vector<std::string> bytes, loss what);
    /// One after the other, each as soon as the one before has been found.
    void cut_at_bytes_in_turn(std::vector<std::pair<std::string, loss>> bytes);
    /// The next `times` requests with `bytes` in them, at most 64, are kept from the server: `reply` is their answer.
    void answer_at_bytes(std::string bytes, std::string_view reply, int times = 1);
    /// How many requests were found so far.
    [[nodiscard]] int cuts() const noexcept { return cuts_; }
    /// Whatever clients say has other bytes, as many, in place of these.
    void put_in_place(std::string bytes, std::string others);
    /// Drops messages of the server with these bytes in them from now on, and keeps the connection. Only for a protocol
    /// that puts the length of each message before it, in four bytes, and for messages that arrive whole; empty: all
    /// arrive.
    void lose_messages(std::string bytes);
    /// Number of messages that were lost in that way.
    [[nodiscard]] int messages_lost() const noexcept { return messages_lost_; }
    /// Number of bytes that servers have said.
    [[nodiscard]] std::uint64_t bytes_from_server() const noexcept { return bytes_from_server_; }
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
    void wait_for_some();
    void accept_one();
    void pass(connection& on);
    void pass_request(connection& on, const std::string& said);
    void look_for_next();
    void remove_lost_messages(std::string& said);

    std::uint16_t upstream_;
    const no_server without_;
    std::uint16_t port_ = 0;
    int listener_ = -1;
    std::atomic<bool> stopped_{false};
    std::atomic<int> cuts_{0};
    std::mutex mutex_;
    std::vector<std::unique_ptr<connection>> connections_;
    std::vector<std::string> looked_for_;
    loss lost_ = loss::request;
    std::deque<std::pair<std::string, loss>> next_cuts_;
    std::string answer_;
    int answers_left_ = 0;
    std::string replaced_;
    std::string replacement_;
    std::string lost_bytes_;
    std::atomic<int> messages_lost_{0};
    std::atomic<std::uint64_t> bytes_from_server_{0};
    bool refuses_ = false;
    bool silent_ = false;
    std::thread thread_;
};

} // namespace colock::testing
