// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/callback_command.hpp"
#include "mongo/commands/connection_pool.hpp"
#include "mongo/commands/statement_errors.hpp"
#include "mongo/driver/command_template.hpp"
#include "mongo/driver/server_clock.hpp"
#include "mongo/settings.hpp"

#include <colock/spi/adapter.hpp>

#include <array>
#include <cstddef>
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
    using handler = std::function<void(const failure_ptr& why)>;
    using failure_handler = std::function<void(const answer& got, std::int32_t no_change_code)>;

    /// \param on_failure receives the answer to each command that was not carried out and ends the check, and the value
    /// of `no_change_code` at that time
    server_check(
        const settings& config, std::shared_ptr<connection_pool> on, handler on_end, failure_handler on_failure);

    /// One of these two functions must be called, once. `start` checks everything. `learn_code` determines only the
    /// code and the clock of a server whose kind was checked before.
    void start() { check_collection(); }
    void learn_code();
    void stop() noexcept;

    /// Code with which the server fails a statement that must change nothing. Valid after a successful check.
    [[nodiscard]] std::int32_t no_change_code() const noexcept { return no_change_code_; }
    /// The clock by which the server carries out updates. Valid after a successful check.
    [[nodiscard]] const server_clock& clock() const noexcept { return clock_; }

private:
    struct step;
    static const std::array<step, 15> steps;

    // Many users have no right to list collections or indexes. Then an unsuitable collection is recognized by the
    // statements that it refuses.
    void check_collection();
    void check_indexes();
    /// Returns why the collection is unsuitable, or an empty text.
    using finder = std::string (*)(const document& reply);
    void check_listing(const command_template& command, finder find_reason, void (server_check::*then)());
    void check_clock() { read_clock(&server_check::check_batch); }
    /// Must not be the first step: the first command also has to authenticate, so its reply arrives late.
    void read_clock(void (server_check::*then)());
    void check_batch();
    /// Reads the code from the first statement, which has to fail. Returns false if it has no such code, and the check
    /// has ended.
    [[nodiscard]] bool read_code(const statement_errors& errors);
    void ask(
        const command_template& which, const std::string& who, std::int64_t number, callback_command::handler then);
    /// Ends the check with a failure unless the command was carried out. Returns whether it was.
    [[nodiscard]] bool require_done(const answer& got);
    void fail_check(const std::string& what);
    void take_step(std::size_t which);
    void answered(std::size_t which, const answer& got);
    void succeed() { end(nullptr); }
    void end(const failure_ptr& why);

    const settings& config_;
    const std::shared_ptr<connection_pool> pool_;
    server_clock clock_;
    int clock_conflicts_ = 0;
    handler on_end_;
    failure_handler on_failure_;
    /// Command in progress. Its connection owns the command, and the command keeps this object alive.
    std::weak_ptr<callback_command> pending_;
    document id_;
    const document owner_;
    const std::string first_;
    const std::string second_;
    std::int32_t no_change_code_ = changes_nothing;
};

} // namespace colock::inline v0::mongo::detail
