// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/callback_command.hpp"
#include "mongo/commands/connection_pool.hpp"
#include "mongo/commands/statement_errors.hpp"
#include "mongo/driver/command_template.hpp"
#include "mongo/driver/server_clock.hpp"
#include "mongo/settings.hpp"
#include "remote/requests/coroutine.hpp"

#include <colock/spi/adapter.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace colock::inline v0::mongo::detail {

/// Checks that a server carries out colock's updates as intended, and that the user has the rights. It acquires a lock,
/// requests it a second time, and so on, on a document that belongs to no key. Some servers speak the protocol but
/// misinterpret pipelines without an error, so that two clients could hold a lock.
///
/// Thread safety: none; belongs to the strand. Its commands keep it alive.
class server_check : public std::enable_shared_from_this<server_check>
{
public:
    /// Receives the reason why the server cannot be used now or at all; null if it can be used. Not called after
    /// `stop`.
    using handler = std::function<void(const failure_ptr& failure)>;
    using failure_handler = std::function<void(const answer& result, std::int32_t no_change_code)>;

    /// \param on_failure called before `on_end` if a command was not carried out, with its answer and the value of
    /// `no_change_code` at that time
    server_check(
        const settings& config, std::shared_ptr<connection_pool> pool, handler on_end, failure_handler on_failure);

    /// One of these two functions must be called, once. `start` checks everything. `learn_code` determines only
    /// `no_change_code` and the clock, of a server that was checked before.
    void start() { run(check_all()); }
    void learn_code() { run(check_code()); }
    void stop() noexcept;

    /// Code with which the server fails a statement that must change nothing. Valid after a successful check.
    [[nodiscard]] std::int32_t no_change_code() const noexcept { return no_change_code_; }
    /// The clock by which the server carries out updates. Valid after a successful check.
    [[nodiscard]] const server_clock& clock() const noexcept { return clock_; }

private:
    void run(remote::coroutine which);
    remote::coroutine check_all();
    remote::coroutine check_code();
    /// \param find_reason returns why the collection is unsuitable, or an empty text
    remote::coroutine check_listing(const command_template& command, std::string (*find_reason)(const document& reply));
    /// Must not be the first step: the first command also has to authenticate, so its reply arrives late.
    remote::coroutine read_clock();
    remote::coroutine check_batch();
    remote::coroutine check_steps();

    /// `co_await` of the result sends the filled command, and returns its answer. The reference is valid until the
    /// coroutine is suspended again.
    [[nodiscard]] auto answer_to(const command_template& command, const std::string& token, std::int64_t number = 0)
    {
        return suspension_.suspend([this, &command, &token, number] { send(command, token, number); },
            [this]() -> const answer& { return *result_; });
    }
    void send(const command_template& command, const std::string& token, std::int64_t number);

    // These functions return false if the check has ended with a failure.

    /// Reads the code from the first statement, which has to fail.
    [[nodiscard]] bool read_code(const answer& result, const statement_errors& errors);
    [[nodiscard]] bool require_done(const answer& result);

    void fail_check(const std::string& text);
    void end(const failure_ptr& failure);
    [[nodiscard]] bool has_ended() const noexcept { return on_end_ == nullptr; }

    const settings& config_;
    const std::shared_ptr<connection_pool> pool_;
    server_clock clock_;
    handler on_end_;
    failure_handler on_failure_;
    /// Command in progress. Its connection owns the command, and the command keeps this object alive.
    std::weak_ptr<callback_command> pending_;
    document id_;
    const document owner_;
    const std::string first_;
    const std::string second_;
    std::int32_t no_change_code_ = changes_nothing;
    const answer* result_ = nullptr;
    remote::suspension_point suspension_;
    remote::coroutine frame_;
};

} // namespace colock::inline v0::mongo::detail
