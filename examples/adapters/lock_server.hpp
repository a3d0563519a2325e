// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;

// A lock server on 127.0.0.1, with a thread of its own. Locks are stored in memory, so that a server that is started
// again has none.
//
// A NUL ends each message, because it is the only byte that a key cannot contain. Replies come in the order of the
// requests:
//
//     request                      reply
//     hello CLIENT                 yes 0
//     create TOKEN TTL KEY         yes FENCE, or no and the nanoseconds until the lock of another token expires
//     extend TOKEN TTL KEY         yes 0, or no 0 if the token does not hold the lock
//     release TOKEN 0 KEY          as above
//     check TOKEN 0 KEY            as above
//
// A client has one connection: its `hello` closes the earlier connection of the same client before it is answered. From
// then on, no request of the earlier connection is executed, however late it arrives. MQTT calls this rule "takeover".
class lock_server
{
public:
    explicit lock_server(std::uint16_t port = 0) : acceptor_(io_, {asio::ip::address_v4::loopback(), port})
    {
        asio::co_spawn(io_, listen(), asio::detached);
        thread_ = std::thread([this] { io_.run(); });
    }
    // Ends all connections.
    ~lock_server()
    {
        io_.stop();
        thread_.join();
    }

    asio::ip::tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
    // Returns the keys that are locked.
    std::vector<std::string> keys()
    {
        return asio::post(io_, asio::use_future([this] {
            remove_expired();
            std::vector<std::string> result;
            for (const auto& each : locks_)
                result.push_back(each.first);
            return result;
        })).get();
    }

private:
    static constexpr std::size_t max_request = 1024;

    struct stored_lock
    {
        std::string token{};
        colock::lease_clock::time_point expires{};
        std::uint64_t fence = 0;
    };

    asio::awaitable<void> listen()
    {
        for (;;) {
            auto socket = std::make_shared<asio::ip::tcp::socket>(co_await acceptor_.async_accept(asio::deferred));
            asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
        }
    }
    asio::awaitable<void> serve(std::shared_ptr<asio::ip::tcp::socket> socket)
    {
        for (std::string input;;) {
            const auto size = co_await asio::async_read_until(
                *socket, asio::dynamic_buffer(input, max_request), '\0', asio::deferred);
            // A request may have been read before a newer connection of the client has closed this one.
            if (!socket->is_open())
                co_return;
            const auto reply = execute(input.substr(0, size - 1), socket) + '\0';
            input.erase(0, size);
            co_await asio::async_write(*socket, asio::buffer(reply), asio::deferred);
        }
    }
    std::string execute(const std::string& request, const std::shared_ptr<asio::ip::tcp::socket>& socket)
    {
        std::istringstream fields(request);
        std::string verb, token, key;
        std::chrono::milliseconds::rep ttl = 0;
        fields >> verb >> token;
        if (verb == "hello") {
            std::erase_if(clients_, [](const auto& each) { return each.second.expired(); });
            if (const auto earlier = std::exchange(clients_[token], socket).lock())
                earlier->close();
            return "yes 0";
        }
        std::getline((fields >> ttl).ignore(), key, '\0');

        remove_expired();
        const auto now = colock::lease_clock::now();
        const auto expires = colock::saturating_add(now, std::chrono::milliseconds(ttl));
        const auto found = locks_.find(key);
        const bool is_held = found != locks_.end() && found->second.token == token;
        if (verb == "create") {
            if (found != locks_.end() && !is_held)
                return "no " + std::to_string((found->second.expires - now).count());
            auto& lock = locks_[key];
            lock = {.token = token, .expires = expires, .fence = is_held ? lock.fence : ++last_fence_};
            return "yes " + std::to_string(lock.fence);
        }
        if (!is_held)
            return "no 0";
        if (verb == "extend")
            found->second.expires = expires;
        else if (verb == "release")
            locks_.erase(found);
        return "yes 0";
    }
    void remove_expired()
    {
        std::erase_if(
            locks_, [now = colock::lease_clock::now()](const auto& each) { return each.second.expires <= now; });
    }

    asio::io_context io_{1};
    asio::ip::tcp::acceptor acceptor_;
    std::map<std::string, stored_lock> locks_;
    // The latest connection of each client.
    std::map<std::string, std::weak_ptr<asio::ip::tcp::socket>> clients_;
    // Begins with the time, so that fences also increase when the server is started again.
    std::uint64_t last_fence_ = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    std::thread thread_;
};
