// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/batch.hpp"
#include "mongo/commands/lock_view.hpp"
#include "mongo/operations/command_operation.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace colock::mongo::detail {

/// One that may go as a statement of an update, with others: when it is asked for the first time.
class batchable_operation : public command_operation
{
public:
    using command_operation::command_operation;

    [[nodiscard]] bool joins() const noexcept override { return true; }
    void start() final;
    void fail(delivery how, failure_ptr why) final;

    void go_alone() { begin(); }
    void travel_with(const std::shared_ptr<batch>& others) { travels_with_ = others; }

    [[nodiscard]] virtual std::string_view key() const noexcept = 0;
    /// The others may ask for what it had.
    [[nodiscard]] virtual bool gives_back() const noexcept = 0;
    /// Adds its statement.
    virtual void write(bson_t& to) = 0;
    /// Operations of one key that name the same kind can be done by one statement; empty: this one cannot.
    [[nodiscard]] virtual std::string statement_kind() const { return {}; }
    /// Adds one statement for all of these, which have named the same kind. They have one outcome, but for what a look
    /// tells of each.
    virtual void write_for(std::span<batchable_operation* const> all, bson_t& to);
    /// Its document has to be read afterwards, which costs a round trip.
    [[nodiscard]] virtual bool wants_look() const = 0;
    /// Without company, a command of its own tells it more, or tells it sooner.
    [[nodiscard]] virtual bool is_better_alone() const { return wants_look(); }

    // What has become of that.
    /// The server, or the driver, has told it of all statements, of which some may have been carried out, or of this
    /// one, which has changed nothing.
    void hear_failed(const answer& what);
    /// It has changed nothing, as it is written.
    virtual void hear_refused() = 0;
    /// It was done.
    virtual void hear_done() = 0;
    /// \param now its document afterwards
    virtual void hear_seen(const lock_view& now) = 0;
    /// Nobody knows its document, though it was to be read.
    virtual void hear_unseen(const answer& failed) = 0;

private:
    std::weak_ptr<batch> travels_with_;
};

} // namespace colock::mongo::detail
