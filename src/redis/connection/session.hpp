// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/connection_setup.hpp"
#include "redis/connection/sentinel_search.hpp"
#include "remote/requests/connection_loop.hpp"
#include "remote/requests/lost_requests.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <memory>
#include <string>

namespace colock::redis::detail {

/// The connection for commands: the server is found, connected to and set up.
///
/// Thread safety: none; belongs to the strand.
class session final : public remote::connection_loop
{
public:
    session(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        connection_factory& made_by, remote::event_reporter& told, fence_anchor& anchor,
        std::atomic<bool>& replicas_seen);

    /// Null while there is none.
    [[nodiscard]] const std::shared_ptr<server_connection>& connection() const noexcept { return link_; }
    /// The server that it leads to, or did last.
    [[nodiscard]] const endpoint& where() const noexcept { return where_; }
    /// The process of that server; empty: not known.
    [[nodiscard]] const std::string& process() const noexcept { return known_by_.process; }

    /// It ends with requests unanswered: these may arrive late until it is known to be dead.
    void lose_requests(remote::connection_number on) { lost_.add(on, known_by_); }
    /// Which of them may still arrive.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept { return lost_; }

    /// In the child of a fork: the connection is the parent's.
    void forked();

private:
    void connect() override;
    void disconnect() override;
    [[nodiscard]] std::string address() const override;
    void connect_to(const endpoint& where);
    void set_up(const failure_ptr& refused, const connection_setup::identity& known_by);
    void link_ended(const error_code& code);

    const settings& config_;
    connection_factory& links_;
    fence_anchor& anchor_;
    std::atomic<bool>& replicas_seen_;
    std::shared_ptr<sentinel_search> search_;
    std::shared_ptr<connection_setup> setup_;
    std::shared_ptr<server_connection> link_;
    endpoint where_;
    connection_setup::identity known_by_;
    remote::lost_requests lost_;
};

} // namespace colock::redis::detail
