// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"
#include "zookeeper/driver/zk_client.hpp"
#include "zookeeper/recipe/requests.hpp"
#include "zookeeper/recipe/unproven_nodes.hpp"
#include "zookeeper/session/server_lookup.hpp"
#include "zookeeper/session/session_event_dispatcher.hpp"
#include "zookeeper/session/session_events.hpp"
#include "zookeeper/session/session_life.hpp"
#include "zookeeper/session/session_node.hpp"
#include "zookeeper/settings.hpp"

#include <colock/clock.hpp>
#include <colock/detail/generation.hpp>
#include <colock/spi/completion.hpp>
#include <colock/spi/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// One session with an ensemble: connects, proves that the session lives, and moves to another server when a connection
/// ends. The session is over when the server reports so. It never comes back, so a new object has to be created. Of
/// locks, the session knows only the nodes that hold them.
///
/// The data of the servers may be replaced by an older copy while the session is not connected. So a resumed session is
/// verified before anything else is sent: its own node must contain the last answered beat, and the nodes that were
/// granted or removed after this beat are checked one by one.
///
/// A new session is verified by its first beat. A server that demands authentication answers only the first request
/// with this reason, so nothing else is sent before the answer.
///
/// Thread safety: none; belongs to the strand that it was created with. Keeps itself alive until it has ended or was
/// closed, or until its context is gone.
class session final : public std::enable_shared_from_this<session>, public context_member, private requests::transport
{
public:
    static std::shared_ptr<session> make(
        const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner);
    session(const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner);
    ~session() override;

    /// Resolves the servers' names, and connects. May be called once.
    void start();

    /// Whether requests can be sent: the session is connected and verified.
    [[nodiscard]] bool connected() const noexcept;
    [[nodiscard]] const session_life& life() const noexcept { return life_; }
    [[nodiscard]] requests& get_requests() noexcept { return requests_; }
    /// Announces requests that are sent by a call of `send`, which follows in the same event-loop iteration.
    void announce_requests() noexcept;
    /// Sends the requests now, not at the end of the event-loop iteration, because no more requests follow.
    void send();

    /// The node holds a lock of this claim from now on. If the server loses the node, the claim is lost.
    void note_granted(const std::string& node, claim_ptr holder);
    /// The node was removed. If the server has it again, it is removed again.
    void note_removed(const std::string& node);
    /// Notes that a node that may have been removed before is created again.
    void note_created(const std::string& node) { unproven_.forget(node); }

    /// Ends the session at the server. Completes with true if the server has confirmed this. Then no node of the
    /// session is left, and no request of the session can still arrive.
    void close(lease_clock::duration deadline, completion<bool> done);
    /// Ends the session without telling the server. Its nodes stay until the server lets the session expire.
    void abandon();

    void context_shutdown() noexcept override;

private:
    struct runtime;
    enum class phase : unsigned char
    {
        created,
        /// Resolves the servers' names, or waits for the next attempt to do so.
        resolving,
        running,
        closing,
        over,
    };

    void look_up_servers();
    void on_servers(server_lookup::result found);
    void open(const std::string& servers);
    /// Starts the timer that checks the heartbeat.
    void start_check_timer();
    void retry_in(lease_clock::duration delay);
    void post_step();
    void post_send();
    /// Lets the driver read or write, delivers its reports, and sends the requests that they have caused.
    void step(bool reads, bool writes);
    /// Returns false if the rest of the greeting has to arrive before the driver may read it. Discards a greeting that
    /// the driver must not read at all.
    [[nodiscard]] bool may_read_greeting();
    /// Returns true if the connection existed before and still exists, and there is nothing more to read.
    bool process(bool reads, bool writes);
    void note_phase(lease_clock::time_point before);
    void wait_for_socket();
    void wait_for_readiness(bool writes);
    void fail_requests();
    void collect_reports();
    int deliver();
    /// Returns whether the driver can send, although the session may not be verified.
    [[nodiscard]] bool can_send() const noexcept;
    /// Verifies the session if needed, and sends a beat.
    void verify_or_send_beat();
    void send_beat();
    void request_beat(bool writes, int requests_left);
    void on_beat_answered(const reply& reply, int requests_left);
    void make_folder(const std::string& path, int requests_left);
    void end_beat();
    void on_history_lost();
    void on_denied();
    /// Sends a beat early if many nodes were granted or removed since the last one.
    void limit_unproven();
    void verify();
    [[nodiscard]] bool continues_verification(const reply& reply, unsigned number);
    void on_own_node_found(const reply& found);
    void verify_nodes();
    void on_node_found(const std::string& node, const reply& found);
    void end_node_verification();
    void on_verified();
    [[nodiscard]] bool take_request() override;
    [[nodiscard]] zk_client* sender() override;
    void complete_later(std::unique_ptr<request> request) override;

    void continue_closing(bool reads);
    void finish_close(bool proven);
    void shut_down() noexcept;
    /// Delivers, after the end of the session, the remaining items and the completion of `close`.
    void deliver_rest();

    const session_settings settings_;
    /// The process that the connection belongs to. A child of it may destroy the session, but not end it.
    const unsigned generation_ = colock::detail::generation.load();
    const std::weak_ptr<session_events> owner_;
    std::unique_ptr<runtime> runtime_;
    std::unique_ptr<zk_client> zk_client_;
    /// The addresses that the driver uses.
    std::vector<asio::ip::tcp::endpoint> servers_;
    phase phase_ = phase::created;
    session_life life_;
    session_event_dispatcher dispatcher_;
    requests requests_{*this};
    session_node own_node_;
    unproven_nodes unproven_;
    /// Number of the current connection, or of the last one. Replies to beats of earlier connections are ignored.
    unsigned connection_ = 0;
    /// Number of the current verification, or of the last one. Replies to earlier ones are ignored.
    unsigned verification_ = 0;
    /// Whether the server of the current connection has not carried out a request of a verification.
    bool is_throttled_ = false;
    /// Whether the current connection has resumed the session.
    bool is_resumed_ = false;
    /// Number of nodes whose verification is not answered.
    std::size_t verifying_count_ = 0;
};

} // namespace colock::inline v0::zookeeper::detail
