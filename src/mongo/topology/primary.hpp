// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/callback_command.hpp"
#include "mongo/commands/connection_pool.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/driver/server_clock.hpp"
#include "mongo/settings.hpp"
#include "mongo/topology/server_check.hpp"
#include "mongo/topology/server_discovery.hpp"
#include "net/tls.hpp"
#include "remote/requests/connection_loop.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace colock::inline v0::mongo::detail {

/// The server that commands are sent to. Finds the primary among the hosts of the URL, checks it, and looks for the
/// primary again when this server is not the primary any more.
///
/// Thread safety: none; belongs to the strand.
class primary final : public remote::connection_loop
{
public:
    using task_ptr = connection_pool::task_ptr;

    /// \param on_capacity called when another command can be started
    primary(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        remote::event_reporter& reporter, std::function<void()> on_capacity);

    /// Returns whether another command can be started at once.
    [[nodiscard]] bool has_capacity() noexcept;
    /// Number of commands in progress on all connections.
    [[nodiscard]] std::size_t in_flight() const noexcept { return pool_ ? pool_->in_flight() : 0; }
    /// Performs a task on the next free connection. The task ends early when it is given up, and fails if its
    /// connection fails. If there is no server, the task ends as not sent, in a handler of its own.
    /// \param deadline time from which the task fails. Only needed for a task that the owner does not give up itself.
    void ask(task_ptr task, lease_clock::time_point deadline = lease_clock::time_point::max());
    /// Performs `next` on the connection of `current`, before that connection performs other tasks. Must be called
    /// while `current` is being notified.
    void ask_next(task& current, task_ptr next);
    void give_up(const task& task);
    void give_up() override;
    /// Handles an answer that is not `done`: the server may not be the primary any more. Warns of an error that leaves
    /// the outcome unknown, once for each code.
    void note_failure(const answer& result);
    /// Returns a command that reads the server's time, and shows whether the server accepts writes. It is `hello`, or a
    /// write if `hello` states the clock of another machine.
    [[nodiscard]] std::shared_ptr<callback_command> make_clock_command(callback_command::handler then) const;
    /// Reads the server's time from the answer to `make_clock_command`.
    /// \returns the refusal that corresponds to the answer, if the server does not accept writes any more
    [[nodiscard]] std::optional<answer> update_clock(const answer& result);
    /// Returns whether the result of a read is reported although the write that should confirm it was denied. True if
    /// the user has no right to write, of which the observer is warned once.
    [[nodiscard]] bool accepts_unconfirmed(const answer& confirmation_answer);

    [[nodiscard]] const server_clock& clock() const noexcept { return clock_; }
    /// Code with which the current or last server fails a statement that must change nothing.
    [[nodiscard]] std::int32_t no_change_code() const noexcept { return no_change_code_; }
    /// Returns the failure of an operation whose command has failed. If the connection was not authenticated, the
    /// refusal may be tolerated.
    [[nodiscard]] failure_ptr failure_of_operation(const answer& result, effect operation_effect);
    /// Returns whether the server has change streams, which only members of a replica set have.
    [[nodiscard]] bool has_change_streams() const noexcept { return is_member_; }
    /// The current or last server.
    [[nodiscard]] const destination& server() const noexcept { return server_; }

private:
    void connect() override;
    void disconnect() override;
    [[nodiscard]] std::string address() const override { return config_.address(); }
    void on_discovered(const discovery_result& result);
    /// \param all false: the check only learns the code of the server
    void check(bool all);
    void on_checked(const failure_ptr& failure);
    /// \param measured the clock by which the server carries out updates
    void set_clock(const server_clock& measured);
    /// Warns of an error that leaves the outcome unknown, once for each code.
    /// \param no_change_code code with which the server fails a statement that must change nothing
    void warn_if_unexplained(const answer& result, std::int32_t no_change_code);
    void on_all_stale();
    void lose(const error_code& error);

    const asio::any_io_executor strand_;
    const settings& config_;
    const std::function<void()> on_capacity_;
    remote::tls_files tls_files_;
    std::optional<asio::ssl::context> tls_;
    std::shared_ptr<const credentials> credentials_;
    bool is_member_ = false;
    /// Name of the last server that was checked; empty: none. After a restart, the server is only asked for
    /// its code, because it may have another one.
    std::string checked_name_;
    server_identity checked_;
    /// Whether the current check is the whole check.
    bool checks_all_ = false;
    std::int32_t no_change_code_ = changes_nothing;
    /// Codes of errors of which the observer was warned.
    std::set<std::int32_t> unexplained_codes_;
    destination server_;
    server_clock clock_;
    /// The clock that the current or last server has stated in `hello` during its discovery.
    server_clock hello_clock_;
    /// Whether both clocks are the same.
    bool uses_hello_clock_ = true;
    std::shared_ptr<server_discovery> discovery_;
    std::shared_ptr<connection_pool> pool_;
    std::shared_ptr<server_check> check_;
};

} // namespace colock::inline v0::mongo::detail
