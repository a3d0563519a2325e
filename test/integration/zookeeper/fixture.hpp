// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/faulty_proxy.hpp"
#include "support/run.hpp"
#include "zookeeper/session/session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace colock::testing {

using namespace std::chrono_literals;
using namespace zookeeper::detail;

/// Records the events of a session.
class session_event_log final : public session_events
{
public:
    void on_connected() noexcept override { ++connections; }
    void on_suspended() noexcept override { ++suspensions; }
    void on_unreachable(const connection_failure& why) noexcept override
    {
        unreachable.push_back(why.text);
        causes.push_back(why.cause);
    }
    void on_lease_ended() noexcept override { ++ended_leases; }
    void on_expired() noexcept override { ++expired; }
    void on_history_lost() noexcept override { ++lost_histories; }
    void on_denied() noexcept override { ++denied; }
    void on_changed(std::string_view path) noexcept override { changed.emplace_back(path); }
    void on_log(std::string_view text) noexcept override { log.emplace_back(text); }

    int connections = 0;
    int suspensions = 0;
    int ended_leases = 0;
    int expired = 0;
    int lost_histories = 0;
    int denied = 0;
    std::vector<std::string> unreachable;
    std::vector<boost::system::error_code> causes;
    std::vector<std::string> changed;
    std::vector<std::string> log;
};

/// A session with an execution context of its own.
struct client
{
    using where = std::source_location;

    explicit client(std::uint16_t port, std::chrono::milliseconds timeout = 6s, location at = {})
        : client(std::vector<endpoint>{{"127.0.0.1", std::to_string(port)}}, timeout, std::move(at))
    {
    }
    client(std::vector<endpoint> servers, std::chrono::milliseconds timeout, location at = {})
    {
        at.servers = std::move(servers);
        if (at.chroot == location{}.chroot)
            at.chroot = chroot;
        at_ = at;
        zk_session = session::make(asio::make_strand(io->get_executor()),
            {.target = std::move(at), .session_timeout = timeout, .server_tick = 500ms}, events);
        zk_session->start();
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client()
    {
        if (io && zk_session)
            static_cast<void>(close(5s));
    }

    void until(const std::function<bool()>& reached, where at = where::current()) { run_until(*io, reached, at); }
    client& connect(where at = where::current())
    {
        // The first heartbeat creates the folders.
        do {
            until([&] { return zk_session->connected(); }, at);
            make(".clock", node_kind::persistent, at);
        } while (!exists(".clock", at).ok());
        return *this;
    }
    template <class Start>
    reply finish(Start start, where at = where::current())
    {
        std::optional<reply> answer;
        start([&](reply got) { answer = std::move(got); });
        until([&] { return answer.has_value(); }, at);
        return *answer;
    }
    bool close(std::chrono::milliseconds deadline, where at = where::current())
    {
        std::optional<bool> proven;
        zk_session->close(deadline, [&](bool got) { proven = got; });
        until([&] { return proven.has_value(); }, at);
        return *proven;
    }
    reply exists(std::string_view name, where at = where::current())
    {
        return finish([&](reply_handler done) { zk_session->get_requests().exists(path(name), std::move(done)); }, at);
    }
    /// Whether the node does not exist at the server now.
    bool is_gone(std::string_view name, where at = where::current())
    {
        zk_session->get_requests().sync(path(name), reply_handler());
        return exists(name, at).outcome == status::no_node;
    }
    reply make(std::string_view name, node_kind lifetime = node_kind::persistent, where at = where::current())
    {
        return finish(
            [&](reply_handler done) {
                zk_session->get_requests().create(path(name), "data", lifetime, std::move(done));
            },
            at);
    }
    reply remove(std::string_view name, where at = where::current())
    {
        return finish([&](reply_handler done) { zk_session->get_requests().remove(path(name), std::move(done)); }, at);
    }
    reply read(std::string_view name, where at = where::current())
    {
        return finish([&](reply_handler done) { zk_session->get_requests().read(path(name), std::move(done)); }, at);
    }
    reply read_and_watch(std::string_view name, where at = where::current())
    {
        return finish(
            [&](reply_handler done) { zk_session->get_requests().read_and_watch(path(name), std::move(done)); }, at);
    }
    reply children(std::string_view name, where at = where::current())
    {
        return finish(
            [&](reply_handler done) { zk_session->get_requests().children(path(name), std::move(done)); }, at);
    }
    reply multi(const std::vector<change>& changes, where at = where::current())
    {
        return finish([&](reply_handler done) { zk_session->get_requests().multi(changes, std::move(done)); }, at);
    }
    [[nodiscard]] std::string path(std::string_view name) const { return (at_.chroot + '/').append(name); }

    /// Each test program has its own root folder.
    static inline const std::string chroot = "/colock-test-" + std::to_string(::getpid());

    std::optional<asio::io_context> io{std::in_place};
    std::shared_ptr<session_event_log> events = std::make_shared<session_event_log>();
    std::shared_ptr<session> zk_session;
    location at_;
};

} // namespace colock::testing
