// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/connection_loop.hpp"
#include "remote/requests/lost_requests.hpp"
#include "zookeeper/recipe/folder_cache.hpp"
#include "zookeeper/recipe/session_users.hpp"
#include "zookeeper/recipe/watches.hpp"
#include "zookeeper/session/history_probe.hpp"
#include "zookeeper/session/session.hpp"
#include "zookeeper/settings.hpp"

#include <colock/spi/lease.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// The sessions of a client with an ensemble, one after the other. A session is created when it is needed, replaced by
/// another one when it has expired, and closed when no claim uses it. The connection of the loop is the connection to a
/// server: a session outlives its connection, and finds the next server by itself.
///
/// Thread safety: none; belongs to the strand.
class session_manager final : public remote::connection_loop
{
public:
    session_manager(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        remote::event_reporter& reporter, watches& all_watches);

    /// Returns null if no request can be sent now.
    [[nodiscard]] requests* get_requests() noexcept;
    /// Number of the current session, or of the last one.
    [[nodiscard]] remote::connection_number number() const noexcept { return number_; }
    /// The server's id of the session.
    [[nodiscard]] std::int64_t id() const noexcept;
    /// The session_lease of new grants; null while there is none.
    [[nodiscard]] std::shared_ptr<session_lease> lease() const noexcept;
    /// Notes that the node holds a lock of this claim.
    void note_granted(const std::string& node, claim_ptr holder);
    /// Notes that the node of a claim was removed, or that the node does not belong to a claim any more.
    void note_removed(const std::string& node);
    /// Notes that a node that may have been removed before is created again.
    void note_created(const std::string& node);
    /// Users of the current session.
    [[nodiscard]] session_users& users() noexcept { return users_; }
    [[nodiscard]] folder_cache& folders() noexcept { return folders_; }
    /// Whether a claim has a node in the current session, and may still release it.
    [[nodiscard]] bool in_use() const noexcept;
    /// Sessions that have ended, and are not proven to have ended at the server.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept { return lost_; }
    /// Whether sessions are being closed.
    [[nodiscard]] bool is_closing() const noexcept { return !closing_.empty(); }
    /// Whether no server has answered for at least a session timeout.
    [[nodiscard]] bool is_presumed_expired() const noexcept;
    /// Abandons the current session, which then expires at the servers. Opens another session if one is needed.
    void leave_to_expire();
    /// Announces requests that are sent by a call of `send`, which follows in the same event-loop iteration.
    void announce_requests() noexcept;
    /// Sends the announced requests.
    void send();
    void forget_old_lists() noexcept;

    /// The sessions that are being closed are abandoned.
    void give_up() override;

private:
    class listener;

    void connect() override;
    void disconnect() override;
    /// Keeps the session: it may be resumed before the next attempt, or be reported as expired.
    void disconnect_for_retry() override {}
    [[nodiscard]] std::string address() const override { return config_.address(); }
    /// \param number number of the session in `lost_`; 0: the session is not in `lost_`
    void close_at_server(const std::shared_ptr<session>& old, remote::connection_number number);
    void remove_lost_nodes();
    void note_timeout();
    void warn_of_few_ticks();
    void on_session_expired();
    /// Drops the current session, which has ended. Opens another one if it is needed: at once if a server has accepted
    /// the session before, else after the delay of a failed attempt.
    void replace_session(failure_ptr failure);
    void on_user_denied();

    /// Probes the history after `delay`, unless the session is connected again before.
    void probe_history_in(lease_clock::duration delay);
    void probe_history(lease_clock::duration delay);
    void on_history_probed(std::int64_t written_in, lease_clock::duration delay);
    void end_probe();
    void on_history_refused(std::int64_t written_in);
    void on_history_lost();

    const asio::any_io_executor strand_;
    const settings& config_;
    watches& watches_;
    asio::steady_timer probe_timer_;
    std::shared_ptr<session> session_;
    std::shared_ptr<listener> listener_;
    remote::connection_number number_ = 0;
    session_users users_;
    folder_cache folders_;
    /// Finds out whether the ensemble has lost its history, while the current session is refused.
    std::shared_ptr<history_probe> probe_;
    std::vector<std::shared_ptr<session>> closing_;
    /// Time since which no server has answered; empty while a server answers, and before the first attempt.
    std::optional<lease_clock::time_point> unreachable_since_;
    remote::lost_requests lost_;
    /// The smallest session timeout that any server may grant, as far as it is known.
    std::optional<std::chrono::milliseconds> smallest_timeout_;
};

} // namespace colock::inline v0::zookeeper::detail
