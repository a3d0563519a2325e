// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/links.hpp"
#include "redis/reply.hpp"
#include "redis/session.hpp"
#include "remote/listening_plan.hpp"
#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "remote/wait_sources.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock::redis::detail {

/// The connection for messages, and the channels that the server is asked for on it; or polling in their place. When
/// which, is decided by its plan.
///
/// Thread safety: none; belongs to the strand.
class subscriptions
{
public:
    using plan_type = remote::listening_plan;
    using event = plan_type::event;

    subscriptions(const asio::any_io_executor& strand, remote::parts_owner& owner, const settings& config,
        links& made_by, remote::reports& told, session& requests, remote::wait_sources& sources);

    /// Lets the plan know, and does what it says.
    void on(event what);
    /// The connection for commands is a new one.
    void follow_requests();
    /// Some of what is due for channels by now, and the rest in turns to come.
    void sweep();

    [[nodiscard]] bool connected() const noexcept { return link_ != nullptr; }
    [[nodiscard]] bool polls() const noexcept { return plan_.polls() || config_.plain(); }

    /// In the child of a fork: the connection is the parent's.
    void forked();

private:
    using source_list = std::vector<remote::wait_sources::source_ptr>;

    void connect();
    void greeted(const reply_list& replies);
    void link_ended();
    void retry_in(lease_clock::duration delay);
    /// They come from another server than the one that commands go to.
    [[nodiscard]] bool are_elsewhere() const;
    void subscribe_some();
    void subscribed(const source_list& asked, const reply& answer);
    void unsubscribe(const std::vector<std::string>& names);
    void receive();
    /// These do some of it, and tell whether there is more.
    [[nodiscard]] bool forget_unused();
    [[nodiscard]] bool poll_some();

    const asio::any_io_executor strand_;
    remote::parts_owner& owner_;
    const settings& config_;
    links& links_;
    remote::reports& reports_;
    session& requests_;
    remote::wait_sources& sources_;
    asio::steady_timer retry_;
    plan_type plan_;
    std::shared_ptr<link> link_;
    /// The process of the server that it was made to; empty if that is not known.
    std::string process_;
    /// Requests that are unanswered.
    unsigned in_flight_ = 0;
    /// The next part of what is due for channels is posted already.
    bool sweeping_ = false;
};

} // namespace colock::redis::detail
