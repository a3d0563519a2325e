// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/faulty_proxy.hpp"

#include "support/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace colock::testing {

struct faulty_proxy::connection
{
    int client;
    int server;
    bool held = false;
    std::string kept{};
    /// The beginning of the first request.
    std::string head{};
    /// The end of the forwarded requests. The searched bytes may begin here.
    std::string tail{};
    /// The next reply of the server is lost.
    bool ends_at_reply = false;
    bool keeps_replies = false;
    std::string replies{};

    [[nodiscard]] bool waits_for_server() const noexcept { return client >= 0 && server < 0; }
    void close()
    {
        for (int* each : {&client, &server}) {
            if (*each >= 0)
                ::close(std::exchange(*each, -1));
        }
    }
    /// Reads what has arrived. Returns nothing at the end of the stream, and an empty text if nothing has arrived.
    static std::optional<std::string> read(int from)
    {
        std::string text(16384, '\0');
        const auto got = ::recv(from, text.data(), text.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return std::nullopt;
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return text;
    }
    static void write(int to, std::string_view text)
    {
        if (to >= 0 && !text.empty())
            ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    }
};

faulty_proxy::faulty_proxy(std::uint16_t upstream, if_unreachable then)
    : upstream_(upstream), if_unreachable_(then), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::system_error(errno, std::generic_category(), "faulty_proxy");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
}

faulty_proxy::~faulty_proxy()
{
    stopped_ = true;
    thread_.join();
    ::close(listener_);
    for (const auto& each : connections_)
        each->close();
}

void faulty_proxy::run()
{
    while (!stopped_) {
        wait_for_input();
        const std::lock_guard guard(mutex_);
        if (silent_)
            continue;
        for (const auto& each : connections_)
            forward(*each);
    }
}

void faulty_proxy::wait_for_input()
{
    std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
    {
        const std::lock_guard guard(mutex_);
        for (const auto& each : connections_) {
            for (const int socket : {each->client, each->server}) {
                if (socket >= 0 && !silent_ && !each->waits_for_server())
                    waiting.push_back({socket, POLLIN, 0});
            }
        }
    }
    // The timeout is short because another thread may end the silence.
    if (::poll(waiting.data(), waiting.size(), 10) > 0 && waiting.front().revents != 0)
        accept_one();
}

void faulty_proxy::accept_one()
{
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard guard(mutex_);
    // If the server does not listen, the client's connection is closed too, unless if_unreachable::wait is set.
    const int server = refuses_ ? -1 : connect_to(upstream_);
    if (server < 0 && (refuses_ || if_unreachable_ == if_unreachable::close))
        ::close(client);
    else
        connections_.push_back(std::make_unique<connection>(connection{client, server}));
}

void faulty_proxy::forward(connection& env)
{
    if (env.waits_for_server() && (env.server = connect_to(upstream_)) < 0)
        return;
    if (env.client >= 0) {
        auto request = connection::read(env.client);
        if (request && env.head.empty())
            env.head = request->substr(0, 256);
        if (!refused_bytes_.empty() && env.head.find(refused_bytes_) != std::string::npos) {
            env.close();
            return;
        }
        if (!request) {
            ::close(std::exchange(env.client, -1));
            // A held connection stays open at the server's end.
            if (!env.held)
                env.close();
        } else if (env.held) {
            env.kept += *request;
        } else if (!request->empty()) {
            if (const auto at = replaced_.empty() ? std::string::npos : request->find(replaced_);
                at != std::string::npos)
                request->replace(at, replaced_.size(), replacement_);
            forward_request(env, *request);
        }
    }
    if (env.server < 0)
        return;
    auto reply = connection::read(env.server);
    if (reply) {
        bytes_from_server_ += reply->size();
        remove_lost_messages(*reply);
    }
    if (env.keeps_replies && reply) {
        env.replies += *reply;
    } else if (!reply || (env.ends_at_reply && !reply->empty())) {
        if (env.held)
            ::close(std::exchange(env.client, -1));
        else
            env.close();
    } else {
        connection::write(env.client, *reply);
    }
}

void faulty_proxy::remove_lost_messages(std::string& reply)
{
    constexpr std::size_t prefix = 4;
    if (lost_bytes_.empty() || reply.find(lost_bytes_) == std::string::npos)
        return;
    for (std::size_t begin = 0; begin + prefix <= reply.size();) {
        std::uint32_t length = 0;
        reply.copy(reinterpret_cast<char*>(&length), prefix, begin);
        const auto end = begin + prefix + ntohl(length);
        if (end > reply.size())
            return;
        if (std::string_view(reply).substr(begin, end - begin).find(lost_bytes_) == std::string_view::npos) {
            begin = end;
        } else {
            reply.erase(begin, end - begin);
            ++messages_lost_;
        }
    }
}

void faulty_proxy::forward_request(connection& env, const std::string& request)
{
    env.tail += request;
    const bool found = std::ranges::any_of(
        searched_, [&](const std::string& each) { return env.tail.find(each) != std::string::npos; });
    if (found && answers_left_ > 0) {
        ++cuts_;
        env.tail.clear();
        if (--answers_left_ == 0)
            searched_.clear();
        connection::write(env.client, make_answer_(request));
        return;
    }
    if (found) {
        ++cuts_;
        const auto lost = lost_;
        start_next_search();
        if (lost == loss::request) {
            env.close();
            return;
        }
        env.ends_at_reply = lost == loss::reply;
        env.keeps_replies = lost == loss::delayed_reply;
    }
    if (env.tail.size() > 64)
        env.tail.erase(0, env.tail.size() - 64);
    connection::write(env.server, request);
}

/// Bytes that were received before this call are not searched.
void faulty_proxy::start_next_search()
{
    searched_.clear();
    if (!next_cuts_.empty()) {
        searched_ = {std::move(next_cuts_.front().first)};
        lost_ = next_cuts_.front().second;
        next_cuts_.pop_front();
    }
    for (const auto& each : connections_)
        each->tail.clear();
}

void faulty_proxy::hold()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_)
        each->held = true;
}

bool faulty_proxy::keeps(std::string_view bytes)
{
    const std::lock_guard guard(mutex_);
    return std::ranges::any_of(connections_, [&](const auto& each) {
        return each->held && !each->kept.empty() && each->kept.find(bytes) != std::string::npos;
    });
}

void faulty_proxy::hang_up()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_) {
        if (each->held && each->client >= 0)
            ::close(std::exchange(each->client, -1));
    }
}

void faulty_proxy::deliver()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_) {
        if (!each->held || each->server < 0)
            continue;
        connection::write(each->server, each->kept);
        ::shutdown(each->server, SHUT_WR);
        // The server closes the connection after it has read and executed all requests.
        char rest[4096];
        while (::recv(each->server, rest, sizeof rest, 0) > 0) {
        }
    }
}

void faulty_proxy::cut_at_bytes(std::string bytes, loss what)
{
    cut_at_any({std::move(bytes)}, what);
}

void faulty_proxy::cut_at_any(std::vector<std::string> bytes, loss what)
{
    const std::lock_guard guard(mutex_);
    next_cuts_.clear();
    start_next_search();
    searched_ = std::move(bytes);
    lost_ = what;
}

void faulty_proxy::cut_at_bytes_in_turn(std::vector<std::pair<std::string, loss>> bytes)
{
    const std::lock_guard guard(mutex_);
    next_cuts_.assign(std::make_move_iterator(bytes.begin()), std::make_move_iterator(bytes.end()));
    start_next_search();
}

void faulty_proxy::answer_at_bytes(std::string bytes, std::string_view reply, int times)
{
    answer_at_bytes(std::move(bytes), [reply = std::string(reply)](std::string_view) { return reply; }, times);
}

void faulty_proxy::answer_at_bytes(
    std::string bytes, std::function<std::string(std::string_view request)> make_reply, int times)
{
    const std::lock_guard guard(mutex_);
    searched_ = {std::move(bytes)};
    make_answer_ = std::move(make_reply);
    answers_left_ = times;
    for (const auto& each : connections_)
        each->tail.clear();
}

void faulty_proxy::put_in_place(std::string bytes, std::string others)
{
    const std::lock_guard guard(mutex_);
    replaced_ = std::move(bytes);
    replacement_ = std::move(others);
}

void faulty_proxy::lose_messages(std::string bytes)
{
    const std::lock_guard guard(mutex_);
    lost_bytes_ = std::move(bytes);
}

void faulty_proxy::lead_to(std::uint16_t upstream)
{
    const std::lock_guard guard(mutex_);
    upstream_ = upstream;
}

void faulty_proxy::deliver_replies()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_) {
        if (std::exchange(each->keeps_replies, false))
            connection::write(each->client, std::exchange(each->replies, {}));
    }
}

void faulty_proxy::refuse(bool refuses)
{
    const std::lock_guard guard(mutex_);
    refuses_ = refuses;
    for (const auto& each : connections_) {
        if (refuses)
            each->close();
    }
}

void faulty_proxy::refuse_connections_with(std::string bytes)
{
    const std::lock_guard guard(mutex_);
    refused_bytes_ = std::move(bytes);
}

void faulty_proxy::silence(bool silent)
{
    const std::lock_guard guard(mutex_);
    silent_ = silent;
}

} // namespace colock::testing
