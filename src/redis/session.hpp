// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection_setup.hpp"
#include "redis/links.hpp"
#include "redis/sentinel_search.hpp"
#include "remote/connection_news.hpp"
#include "remote/connection_plan.hpp"
#include "remote/lost_requests.hpp"
#include "remote/parts_owner.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <memory>
#include <string>

namespace colock::redis::detail {

/// The connection for commands: found, made, set_up, and made again. When, is decided by its plan.
///
/// Thread safety: none; belongs to the strand.
class session
{
public:
    using plan_type = remote::connection_plan;
    using event = plan_type::event;

    session(const asio::any_io_executor& strand, remote::parts_owner& owner, const settings& config, links& made_by,
        remote::reports& told, fence_anchor& anchor, std::atomic<bool>& replicas_seen);

    /// Lets the plan know, and does what it says.
    /// \param loss why it has ended, if it has
    void on(event what, const error_code& loss = {});
    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }
    /// Something is sent on it.
    void note_use() noexcept { used_ = true; }

    /// Null while there is none.
    [[nodiscard]] const std::shared_ptr<link>& connection() const noexcept { return link_; }
    /// The server that it leads to, or did last.
    [[nodiscard]] const endpoint& where() const noexcept { return where_; }
    /// The process of that server; empty: not known.
    [[nodiscard]] const std::string& process() const noexcept { return known_by_.process; }
    /// Why there is none; null if there is one, or none was ever needed.
    [[nodiscard]] const failure_ptr& problem() const noexcept { return problem_; }

    /// It ends with requests unanswered: these may arrive late until it is known to be dead.
    void lose_requests(remote::connection_number on) { lost_.add(on, known_by_); }
    /// Which of them may still arrive.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept { return lost_; }

    /// In the child of a fork: the connection is the parent's.
    void forked();

private:
    void connect();
    void connect_to(const endpoint& where);
    void set_up(const failure_ptr& refused, const connection_setup::identity& known_by);
    /// The attempt has failed; what passes is tried again.
    void fail_to_connect(const failure_ptr& why);
    void refuse(const failure_ptr& why);
    void link_ended(const error_code& code);
    void let_go();
    void retry_in(lease_clock::duration delay);
    [[nodiscard]] std::string address() const;

    remote::parts_owner& owner_;
    const settings& config_;
    links& links_;
    remote::reports& reports_;
    fence_anchor& anchor_;
    std::atomic<bool>& replicas_seen_;
    asio::steady_timer retry_;
    remote::connection_news news_;
    plan_type plan_;
    bool used_ = false;
    std::shared_ptr<sentinel_search> search_;
    std::shared_ptr<connection_setup> setup_;
    std::shared_ptr<link> link_;
    endpoint where_;
    connection_setup::identity known_by_;
    failure_ptr problem_;
    remote::lost_requests lost_;
};

} // namespace colock::redis::detail
