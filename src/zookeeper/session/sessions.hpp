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

namespace colock::zookeeper::detail {

/// Our sessions with the ensemble, one after the other: made when somebody needs one, made anew when one has expired,
/// and closed when nothing is in it. The connection of the loop is the one to a server: a session goes on without it,
/// and finds the next server by itself.
///
/// Thread safety: none; belongs to the strand.
class sessions final : public remote::connection_loop
{
public:
    sessions(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        remote::event_reporter& told, watches& watched);

    /// Null: no request can be sent now.
    [[nodiscard]] requests* ask() noexcept;
    /// The session in use, or that was last.
    [[nodiscard]] remote::connection_number number() const noexcept { return number_; }
    /// By which the server knows it.
    [[nodiscard]] std::int64_t id() const noexcept;
    /// What a grant of now is tied to. Null while there is none.
    [[nodiscard]] std::shared_ptr<session_bound> bound() const noexcept;
    /// Who is in the session in use.
    [[nodiscard]] session_users& inside() noexcept { return inside_; }
    [[nodiscard]] folder_cache& folders() noexcept { return folders_; }
    /// Of the session in use.
    /// Somebody has a node in it, and may still give that back.
    [[nodiscard]] bool in_use() const noexcept;
    /// Which sessions have ended, and are not known to be over.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept { return lost_; }
    /// Some are being closed.
    [[nodiscard]] bool closing() const noexcept { return !closing_.empty(); }
    /// No server has answered for as long as one keeps a session that it does not hear of.
    [[nodiscard]] bool is_out_of_reach() const noexcept;
    /// Gives the session in use up: the servers end it by themselves. What is needed goes on in another.
    void leave_to_expire();
    /// Something is asked, and sent in this turn.
    void begin_asking() noexcept;
    /// It need not wait for more.
    void send();

    /// Whoever closes waits no longer: what is unanswered does not keep the one in use, and those that were being
    /// closed are let go of.
    void give_up();

    /// In the child of a fork: they are the parent's.
    void forked();

private:
    class listener;

    void connect() override;
    void disconnect() override;
    /// The session stays: it may come back before the next attempt, or hear that it is over.
    void disconnect_for_retry() override {}
    [[nodiscard]] std::string address() const override { return config_.address(); }
    /// \param number by which its unanswered requests are known; 0: it has none
    void close_at_server(const std::shared_ptr<session>& old, remote::connection_number number);
    void remove_lost();
    void note_timeout();
    void warn_of_short();
    void expired();
    /// The session in use is over; the next one is made where it is needed.
    void go_on_in_another(failure_ptr why);
    void denied();

    /// Probes the history after that time, unless the session is connected again before.
    void probe_history_in(lease_clock::duration delay);
    void probe_history(lease_clock::duration delay);
    void history_probed(std::int64_t written_in, lease_clock::duration delay);
    void end_probe();
    void history_lost(std::int64_t written_in);

    const asio::any_io_executor strand_;
    const settings& config_;
    watches& watches_;
    asio::steady_timer probe_timer_;
    std::shared_ptr<session> client_;
    std::shared_ptr<listener> listener_;
    remote::connection_number number_ = 0;
    session_users inside_;
    folder_cache folders_;
    /// While the session in use is refused: finds out whether the ensemble has lost its history.
    std::shared_ptr<history_probe> probe_;
    std::vector<std::shared_ptr<session>> closing_;
    /// Since when no server has answered; empty while one does, and before the first attempt.
    std::optional<lease_clock::time_point> silent_since_;
    remote::lost_requests lost_;
    /// The smallest session timeout that any server may grant, as far as is known.
    std::optional<std::chrono::milliseconds> smallest_timeout_;
};

} // namespace colock::zookeeper::detail
