// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/sockets.hpp"

#include "support/process.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace colock::testing {

namespace {

using namespace std::chrono_literals;

sockaddr_in loopback(std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

} // namespace

std::uint16_t free_port()
{
    // The ports are below the ephemeral range, from which the system could assign a port to a connection at any moment.
    // No port is returned again for a long time: the server that it was returned for may not have opened it yet.
    static std::atomic<unsigned> next{std::random_device()() % 12'000};
    for (int i = 0; i < 1000; ++i) {
        const auto port = static_cast<std::uint16_t>(20'000 + next++ % 12'000);
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto address = loopback(port);
        const bool free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
        ::close(socket);
        if (free)
            return port;
    }
    throw std::runtime_error("there is no free port");
}

void on_free_port(const std::function<void(std::uint16_t)>& start)
{
    for (int attempts_left = 4; attempts_left > 0; --attempts_left) {
        try {
            return start(free_port());
        } catch (const std::runtime_error&) {
        }
    }
    start(free_port());
}

int connect_to(std::uint16_t port)
{
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    const timeval limit{30, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return socket;
    ::close(socket);
    return -1;
}

void write_all(int socket, std::string_view text)
{
    while (!text.empty()) {
        const auto written = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        if (written <= 0)
            throw std::runtime_error("a test's server has closed its connection");
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

void wait_until_serving(child_process& program, std::uint16_t port, const char* why_not)
{
    const auto limit = std::chrono::steady_clock::now() + 30s;
    for (;;) {
        if (!program.alive() || std::chrono::steady_clock::now() > limit)
            throw std::runtime_error(why_not + ("; its last words:\n" + program.log_tail()));
        const int socket = connect_to(port);
        if (socket >= 0) {
            ::close(socket);
            return;
        }
        std::this_thread::sleep_for(10ms);
    }
}

} // namespace colock::testing
