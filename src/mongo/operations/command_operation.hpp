// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/client.hpp"
#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"
#include "mongo/commands/question.hpp"
#include "mongo/driver/conversation.hpp"
#include "mongo/driver/failures.hpp"
#include "remote/requests/operation.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace colock::mongo::detail {

using remote::delivery;
using remote::operation_ptr;

/// One whose answers come to members of its own, until it has ended. An operation of one command, and of the write that
/// confirms its answer if need be, is written so; one of several commands is a `coroutine_operation`.
class command_operation : public remote::operation
{
public:
    explicit command_operation(client& owner) : owner_(std::static_pointer_cast<client>(owner.shared_from_this())) {}

    void start() override { begin(); }
    void fail(delivery how, failure_ptr why) override;
    /// It may join a read that has not been sent yet.
    [[nodiscard]] virtual bool shares_read() const noexcept { return false; }

protected:
    /// Anew, if it could not be sent.
    virtual void begin() = 0;
    /// It has ended.
    virtual void failed(delivery how, failure_ptr why) = 0;
    /// Others were faster each time. By default it fails.
    virtual void outrun();

    [[nodiscard]] const settings& config() const noexcept { return owner_->config(); }
    [[nodiscard]] primary& talks() const noexcept { return owner_->talks(); }

    /// Only what was done comes to the member.
    template <class Operation>
    void ask(document what, void (Operation::*member)(const answer&))
    {
        send(std::move(what), bound<Operation>(member));
    }
    /// Asks the server for its time, and whether it takes writes. Calls `then` if it does; otherwise the operation
    /// begins again with the next primary.
    void greet(question::handler then);
    /// The server's clock is read once more, then it begins anew. False: that was done already.
    [[nodiscard]] bool begin_with_new_clock();
    /// What a server has said that may be a primary no more: it goes to the member when a majority has confirmed a
    /// write on the same connection since.
    template <class Operation>
    void confirm(void (Operation::*member)(const answer&))
    {
        send_confirmation(false, bound<Operation>(member));
    }
    /// The same of what was read. A user without the right to write is told it unconfirmed.
    template <class Operation>
    void confirm_read(void (Operation::*member)(const answer&))
    {
        send_confirmation(true, bound<Operation>(member));
    }

    // For the gaps.
    [[nodiscard]] std::string_view collection() const noexcept { return config().collection; }
    [[nodiscard]] std::int64_t write_patience() const noexcept { return config().operation_timeout.count(); }
    /// By the server's clock, when nobody here waits any more for what is sent now; and a second.
    [[nodiscard]] std::int64_t too_late() const noexcept;

    /// Before anybody is told.
    void end() { owner_->queue().ended(*this); }
    void end_failed(delivery how, failure_ptr why)
    {
        const operation_ptr kept(this);
        end();
        failed(how, std::move(why));
    }

    /// What has become of a command: `then` is told what was done.
    void answered(const answer& got, const question::handler& then);

    const std::shared_ptr<client> owner_;

private:
    void send(document what, question::handler then);
    void send_confirmation(bool of_read, question::handler then);
    template <class Operation>
    [[nodiscard]] question::handler bound(void (Operation::*member)(const answer&))
    {
        return [self = boost::intrusive_ptr<Operation>(static_cast<Operation*>(this)), member](
                   const answer& got) { (self.get()->*member)(got); };
    }
    /// Whoever is told keeps us.
    [[nodiscard]] question::handler told_to(question::handler then);

    conversation client_;
    int conflicts_ = 0;
    bool clock_is_new_ = false;
};

/// `?x` of a create or an extension.
[[nodiscard]] std::int64_t ttl_value(std::chrono::milliseconds ttl) noexcept;

} // namespace colock::mongo::detail
