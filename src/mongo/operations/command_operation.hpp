// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/callback_command.hpp"
#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/operations/command_chain.hpp"
#include "mongo/operations/operation_client.hpp"
#include "remote/requests/operation.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace colock::inline v0::mongo::detail {

using remote::delivery;
using remote::operation_ptr;

/// An operation whose answers are passed to its member functions until it has ended. For operations that send
/// one command, and a write that confirms the answer if necessary. For several commands see `coroutine_operation`.
class command_operation : public remote::operation
{
public:
    explicit command_operation(operation_client& owner)
        : owner_(std::static_pointer_cast<operation_client>(owner.shared_from_this()))
    {
    }

    void start() override { begin(); }
    void fail(delivery request_state, failure_ptr failure) override;
    /// Returns whether the operation may join a read that has not been sent yet.
    [[nodiscard]] virtual bool shares_read() const noexcept { return false; }

protected:
    /// Starts the operation. Called again if a command could not be sent.
    virtual void begin() = 0;
    /// Called when the operation has failed and has ended.
    virtual void failed(delivery request_state, failure_ptr failure) = 0;
    /// Called if other clients were faster in each attempt. By default, the operation fails.
    virtual void on_conflicts_exhausted();

    [[nodiscard]] const settings& config() const noexcept { return owner_->config(); }
    [[nodiscard]] primary& get_primary() const noexcept { return owner_->get_primary(); }

    /// Sends a command. `member` is called only if the command was carried out.
    template <class Operation>
    void ask(document request, void (Operation::*member)(const answer&))
    {
        send(std::move(request), effect::writes, bound<Operation>(member));
    }
    /// Like `ask`, for a command that changes nothing.
    template <class Operation>
    void ask_read(document request, void (Operation::*member)(const answer&))
    {
        send(std::move(request), effect::reads, bound<Operation>(member));
    }
    /// Must be called when a command of several operations may be sent that changes something for this operation.
    void note_write() noexcept { effect_ = effect::writes; }
    [[nodiscard]] bool has_written() const noexcept { return effect_ == effect::writes; }
    /// Asks the server for its time and whether it accepts writes. Calls `then` if it does. Otherwise the operation
    /// begins again with the next primary.
    void read_clock(callback_command::handler then);
    /// Reads the server's clock again, and then calls `begin`. Returns false if this was done before.
    [[nodiscard]] bool begin_with_new_clock();
    /// Confirms an answer of a server that may not be the primary any more. Calls `member` after a majority has
    /// confirmed a write on the same connection.
    template <class Operation>
    void confirm(void (Operation::*member)(const answer&))
    {
        send_confirmation(false, bound<Operation>(member));
    }
    /// Like `confirm`, for the result of a read. For a user without the right to write, `member` is called without a
    /// confirmation.
    template <class Operation>
    void confirm_read(void (Operation::*member)(const answer&))
    {
        send_confirmation(true, bound<Operation>(member));
    }

    // Values of placeholders.
    [[nodiscard]] std::string_view collection() const noexcept { return config().collection; }
    [[nodiscard]] std::int64_t write_concern_timeout() const noexcept { return config().operation_timeout.count(); }
    /// Returns the operation's deadline plus one second, by the server's clock. The server must not carry out the
    /// request after this time, because no caller waits for the reply any more.
    [[nodiscard]] std::int64_t request_expiry() const noexcept;

    /// Returns the server's time while it carried out the command of this answer.
    [[nodiscard]] server_time time_of(const answer& result) const noexcept;
    /// Returns the server's time now, for the next command.
    [[nodiscard]] server_time time_of_next() const noexcept;

    /// Removes the operation from the queue. Must be called before the completion handler.
    void end() { owner_->queue().on_ended(*this); }
    void end_failed(delivery request_state, failure_ptr failure)
    {
        const operation_ptr kept(this);
        end();
        failed(request_state, std::move(failure));
    }

    /// Handles the answer to a command. Calls `then` only if the command was carried out.
    void answered(const answer& result, const callback_command::handler& then);

    const std::shared_ptr<operation_client> owner_;

private:
    void send(document request, effect command_effect, callback_command::handler then);
    void send_confirmation(bool of_read, callback_command::handler then);
    template <class Operation>
    [[nodiscard]] callback_command::handler bound(void (Operation::*member)(const answer&))
    {
        return [self = boost::intrusive_ptr<Operation>(static_cast<Operation*>(this)), member](
                   const answer& result) { (self.get()->*member)(result); };
    }
    /// The returned handler keeps this operation alive.
    [[nodiscard]] callback_command::handler handler_for(callback_command::handler then);

    command_chain chain_;
    /// Whether a command was sent, in this attempt or an earlier one, that may have changed something.
    effect effect_ = effect::reads;
    int conflicts_ = 0;
    bool clock_is_new_ = false;
};

/// Returns the failure of a request that the server has refused although its lock may still be held.
[[nodiscard]] failure_ptr too_late();
/// Returns the value of `?x` for a create or an extension.
[[nodiscard]] std::int64_t ttl_value(std::chrono::milliseconds ttl) noexcept;

} // namespace colock::inline v0::mongo::detail
