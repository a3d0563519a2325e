// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/failures.hpp"
#include "mongo/lanes.hpp"
#include "mongo/login.hpp"
#include "mongo/scout.hpp"
#include "mongo/server_check.hpp"
#include "mongo/server_clock.hpp"
#include "mongo/settings.hpp"
#include "remote/connection_news.hpp"
#include "remote/connection_plan.hpp"
#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "remote/tls.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace colock::mongo::detail {

/// Where commands go: found among the hosts of the URL, checked, and found anew when it is the primary no more. When,
/// is decided by its plan.
///
/// Thread safety: none; belongs to the strand.
class primary
{
public:
    using plan_type = remote::connection_plan;
    using event = plan_type::event;
    using task_ptr = lanes::task_ptr;

    /// \param room told when another command can be begun
    primary(const asio::any_io_executor& strand, remote::parts_owner& owner, const settings& config,
        remote::reports& told, std::function<void()> room);

    /// Lets the plan know, and does what it says.
    void on(event what, const error_code& loss = {});
    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }

    /// Another command can be begun at once.
    [[nodiscard]] bool has_room() noexcept;
    /// Commands, in all lanes.
    [[nodiscard]] std::size_t under_way() const noexcept { return lanes_ ? lanes_->under_way() : 0; }
    /// On a lane that is free, or the next that is; it ends when it is given up, or its lane fails. Where there is no
    /// server it ends as not sent, by a handler of its own.
    void ask(task_ptr what);
    /// The same on the connection of `answered`, which is being told, before that is used by others.
    void ask_next(task& answered, task_ptr what);
    void give_up(const task& what);
    /// The time that a close was given is over: nothing under way is waited for.
    void give_up_all();
    /// What was not done: the server may be the primary no more.
    void heard(const answer& got);
    /// Takes the server's time from an answer to `hello`.
    /// \returns the refusal that the answer amounts to, if the server takes no writes any more
    [[nodiscard]] std::optional<answer> heard_hello(const answer& got);
    /// Whether what a read has found is told without the write that was to confirm it: a user without the right to
    /// write is warned of that once.
    [[nodiscard]] bool accepts_unconfirmed(const answer& to_confirmation);

    [[nodiscard]] const server_clock& clock() const noexcept { return clock_; }
    /// With which the server in use, or the last, refuses what may change nothing.
    [[nodiscard]] std::int32_t no_change_code() const noexcept { return no_change_code_; }
    /// A server of a replica set has change streams.
    [[nodiscard]] bool has_change_streams() const noexcept { return is_member_; }
    /// The server in use, or the last.
    [[nodiscard]] const destination& where() const noexcept { return where_; }

    /// Why there is none; null if there is one, or none was ever needed.
    [[nodiscard]] const failure_ptr& problem() const noexcept { return problem_; }

    /// In the child of a fork: the connections are the parent's.
    void forked();

private:
    void connect();
    void found(const finding& what);
    void check();
    void checked(const failure_ptr& why);
    void opened();
    void fail_to_connect(const failure_ptr& why);
    void refuse(const failure_ptr& why);
    void stale();
    void lose(const error_code& why);
    void let_go();
    void retry_in(lease_clock::duration delay);

    const asio::any_io_executor strand_;
    remote::parts_owner& owner_;
    const settings& config_;
    remote::reports& reports_;
    const std::function<void()> room_;
    asio::steady_timer retry_;
    remote::connection_news news_;
    plan_type plan_;
    remote::tls_files tls_files_;
    std::optional<asio::ssl::context> tls_;
    std::optional<login> login_;
    bool used_ = false;
    bool is_member_ = false;
    /// The last server that carries our commands out as they are meant; empty: none. So do those that follow it, but
    /// each has its own code.
    std::string checked_;
    std::int32_t no_change_code_ = changes_nothing;
    destination where_;
    server_clock clock_;
    std::shared_ptr<scout> scout_;
    std::shared_ptr<lanes> lanes_;
    std::shared_ptr<server_check> check_;
    failure_ptr problem_;
};

} // namespace colock::mongo::detail
