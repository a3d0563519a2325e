// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection_pool.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/settings.hpp"
#include "mongo/topology/server_check.hpp"
#include "mongo/topology/server_clock.hpp"
#include "mongo/topology/server_discovery.hpp"
#include "net/tls.hpp"
#include "remote/requests/connection_loop.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace colock::mongo::detail {

/// The server that commands go to: found among the hosts of the URL, checked, and looked for again when it is no longer
/// the primary.
///
/// Thread safety: none; belongs to the strand.
class primary final : public remote::connection_loop
{
public:
    using task_ptr = connection_pool::task_ptr;

    /// \param room told when another command can be begun
    primary(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        remote::event_reporter& told, std::function<void()> room);

    /// Another command can be begun at once.
    [[nodiscard]] bool has_room() noexcept;
    /// Commands, in all lanes.
    [[nodiscard]] std::size_t under_way() const noexcept { return lanes_ ? lanes_->under_way() : 0; }
    /// On a lane that is free, or the next that is; it ends when it is given up, or its lane fails. Where there is no
    /// server it ends as not sent, by a handler of its own.
    /// \param deadline time at which `what` fails, for a task that the owner never gives up
    void ask(task_ptr what, lease_clock::time_point deadline = lease_clock::time_point::max());
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

    /// In the child of a fork: the connections are the parent's.
    void forked();

private:
    void connect() override;
    void disconnect() override;
    [[nodiscard]] std::string address() const override { return config_.address(); }
    void found(const discovery_result& what);
    void check();
    void checked(const failure_ptr& why);
    void stale();
    void lose(const error_code& why);

    const asio::any_io_executor strand_;
    const settings& config_;
    const std::function<void()> room_;
    remote::tls_files tls_files_;
    std::optional<asio::ssl::context> tls_;
    std::shared_ptr<const credentials> credentials_;
    bool is_member_ = false;
    /// The last server that carries our commands out as they are meant; empty: none. So do those that follow it, but
    /// each has its own code.
    std::string checked_;
    std::int32_t no_change_code_ = changes_nothing;
    destination where_;
    server_clock clock_;
    std::shared_ptr<server_discovery> scout_;
    std::shared_ptr<connection_pool> lanes_;
    std::shared_ptr<server_check> check_;
};

} // namespace colock::mongo::detail
