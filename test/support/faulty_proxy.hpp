// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace colock::testing {

/// The message that is lost on a connection.
enum class loss : unsigned char
{
    /// A request, with its connection: the server never receives the request.
    request,
    /// A reply, with its connection.
    reply,
    /// Nothing is lost; the reply is delayed until deliver_replies() is called.
    delayed_reply,
};

/// Selects what the proxy does with a new connection while the server does not listen.
enum class if_unreachable : unsigned char
{
    close,
    /// Keeps the connection until the server listens, as with a client that repeats its attempt.
    wait,
};

/// A TCP proxy to a server on 127.0.0.1. It fails at exactly the bytes that a test names. It can also keep the requests
/// of a client, longer than the client exists.
class faulty_proxy
{
public:
    explicit faulty_proxy(std::uint16_t upstream, if_unreachable then = if_unreachable::close);
    ~faulty_proxy();
    faulty_proxy(const faulty_proxy&) = delete;
    faulty_proxy& operator=(const faulty_proxy&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// From now on keeps everything that clients send on the connections that exist now. Later connections are not
    /// affected.
    void hold();
    /// Returns whether a kept request contains `bytes`; if `bytes` is empty, whether anything is kept.
    [[nodiscard]] bool keeps(std::string_view bytes = {});
    /// Closes the held connections to the clients, and keeps the requests that were sent on them.
    void hang_up();
    /// Delivers the kept requests. Returns when the server has executed them.
    void deliver();

    /// Loses the next request that contains `bytes` (at most 64 bytes), or its reply. Happens once.
    void cut_at_bytes(std::string bytes, loss what);
    /// Like cut_at_bytes(), for the first request that contains any of these texts.
    void cut_at_any(std::vector<std::string> bytes, loss what);
    /// Several cuts in the given order. The search for each starts when the one before has been found.
    void cut_at_bytes_in_turn(std::vector<std::pair<std::string, loss>> bytes);
    /// Answers the next `times` requests that contain `bytes` (at most 64 bytes) with `reply`. The server does not
    /// receive them.
    void answer_at_bytes(std::string bytes, std::string_view reply, int times = 1);
    /// Like answer_at_bytes() above, with a reply that is made from the request.
    void answer_at_bytes(
        std::string bytes, std::function<std::string(std::string_view request)> make_reply, int times = 1);
    /// Number of requests that were found so far.
    [[nodiscard]] int cuts() const noexcept { return cuts_; }
    /// Replaces `bytes` by `others` in the requests of all clients. Both have the same length.
    void put_in_place(std::string bytes, std::string others);
    /// From now on drops each message of the server that contains these bytes, and keeps the connection. Works only for
    /// a protocol with a four-byte length before each message, and for messages that arrive whole. An empty text ends
    /// the filter.
    void lose_messages(std::string bytes);
    /// Number of messages that lose_messages() has dropped.
    [[nodiscard]] int messages_lost() const noexcept { return messages_lost_; }
    /// Number of bytes that were received from servers.
    [[nodiscard]] std::uint64_t bytes_from_server() const noexcept { return bytes_from_server_; }
    /// Delivers the replies that loss::delayed_reply has delayed.
    void deliver_replies();
    /// Connects later connections to another server.
    void lead_to(std::uint16_t upstream);
    /// If `refuses` is true, closes all connections, and closes new ones at once.
    void refuse(bool refuses);
    /// Closes each connection whose first request contains `bytes`, now and later. An empty text ends this.
    void refuse_connections_with(std::string bytes);
    /// If `silent` is true, nothing is forwarded in either direction, but no connection is closed.
    void silence(bool silent);

private:
    struct connection;
    void run();
    void wait_for_input();
    void accept_one();
    void forward(connection& env);
    void forward_request(connection& env, const std::string& request);
    void start_next_search();
    void remove_lost_messages(std::string& reply);

    std::uint16_t upstream_;
    const if_unreachable if_unreachable_;
    std::uint16_t port_ = 0;
    int listener_ = -1;
    std::atomic<bool> stopped_{false};
    std::atomic<int> cuts_{0};
    std::mutex mutex_;
    std::vector<std::unique_ptr<connection>> connections_;
    std::vector<std::string> searched_;
    loss lost_ = loss::request;
    std::deque<std::pair<std::string, loss>> next_cuts_;
    std::function<std::string(std::string_view request)> make_answer_;
    int answers_left_ = 0;
    std::string replaced_;
    std::string replacement_;
    std::string lost_bytes_;
    std::atomic<int> messages_lost_{0};
    std::atomic<std::uint64_t> bytes_from_server_{0};
    bool refuses_ = false;
    std::string refused_bytes_;
    bool silent_ = false;
    std::thread thread_;
};

} // namespace colock::testing
