// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/connection_news.hpp"
#include "remote/connection_plan.hpp"
#include "remote/lost_requests.hpp"
#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "zookeeper/folder_memory.hpp"
#include "zookeeper/history_probe.hpp"
#include "zookeeper/residents.hpp"
#include "zookeeper/session.hpp"
#include "zookeeper/settings.hpp"
#include "zookeeper/watches.hpp"

#include <colock/lease.hpp>

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
/// and closed when nothing is in it. When, is decided by its plan, for which the connection is that to a server: the
/// session goes on without, and finds the next by itself.
///
/// Thread safety: none; belongs to the strand.
class sessions
{
public:
    using plan_type = remote::connection_plan;
    using event = plan_type::event;

    sessions(const asio::any_io_executor& strand, remote::parts_owner& owner, const settings& config,
        remote::reports& told, watches& watched);

    /// Lets the plan know, and does what it says.
    void on(event what, const error_code& loss = {});
    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }

    /// Null: no request can be sent now.
    [[nodiscard]] requests* ask() noexcept;
    /// The session in use, or that was last.
    [[nodiscard]] remote::connection_number number() const noexcept { return number_; }
    /// By which the server knows it.
    [[nodiscard]] std::int64_t id() const noexcept;
    /// What a grant of now is tied to. Null while there is none.
    [[nodiscard]] std::shared_ptr<session_bound> bound() const noexcept;
    /// Who is in the session in use.
    [[nodiscard]] residents& inside() noexcept { return inside_; }
    [[nodiscard]] folder_memory& folders() noexcept { return folders_; }
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
    /// Why there is no connection; null if there is one, or none was ever needed.
    [[nodiscard]] const failure_ptr& problem() const noexcept { return problem_; }
    /// The server has refused us; some may still have to be told.
    [[nodiscard]] bool is_denied() const noexcept { return plan_.demoted() && !plan_.idle(); }
    /// Whoever waited for one that is denied was told.
    void refused();
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

    void connect();
    void close();
    /// \param number by which its unanswered requests are known; 0: it has none
    void close_at_server(const std::shared_ptr<session>& old, remote::connection_number number);
    void retry_in(lease_clock::duration delay);
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
    remote::parts_owner& owner_;
    const settings& config_;
    remote::reports& reports_;
    watches& watches_;
    asio::steady_timer retry_;
    asio::steady_timer probe_timer_;
    remote::connection_news news_;
    plan_type plan_;
    bool used_ = false;
    std::shared_ptr<session> talk_;
    std::shared_ptr<listener> listener_;
    remote::connection_number number_ = 0;
    residents inside_;
    folder_memory folders_;
    /// While the session in use is refused: finds out whether the ensemble has lost its history.
    std::shared_ptr<history_probe> probe_;
    std::vector<std::shared_ptr<session>> closing_;
    failure_ptr problem_;
    /// Since when no server has answered; empty while one does, and before the first attempt.
    std::optional<lease_clock::time_point> silent_since_;
    remote::lost_requests lost_;
    /// The smallest session timeout that any server may grant, as far as is known.
    std::optional<std::chrono::milliseconds> smallest_timeout_;
};

} // namespace colock::zookeeper::detail
