// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/operations/batch.hpp"
#include "mongo/operations/command_operation.hpp"
#include "mongo/templates/lock_view.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace colock::inline v0::mongo::detail {

/// An operation that can be sent in a batch, as a statement of an update. After a conflict or a statement that was
/// refused, the next attempt is sent as a command of its own.
class batchable_operation : public command_operation
{
public:
    using command_operation::command_operation;

    [[nodiscard]] bool is_batchable() const noexcept override { return true; }
    void start() final;
    void fail(delivery request_state, failure_ptr failure) final;

    void send_alone() { begin(); }
    void set_batch(const std::shared_ptr<batch>& others)
    {
        note_write();
        batch_ = others;
    }

    [[nodiscard]] virtual std::string_view key() const noexcept = 0;
    /// Returns whether the operation releases a lock, which another operation of the batch may acquire.
    [[nodiscard]] virtual bool is_release() const noexcept = 0;
    /// Appends the statement of this operation.
    virtual void write(bson_t& to) = 0;
    /// Operations on one key that return the same kind can share a statement. Empty: this operation needs a statement
    /// of its own.
    [[nodiscard]] virtual std::string statement_kind() const { return {}; }
    /// Appends one statement for several operations on one key that have returned the same kind. The statement is
    /// carried out or fails for all of them. If they need the document, it shows which of them have got the lock.
    virtual void write_for(std::span<batchable_operation* const> all, bson_t& to);
    /// Returns whether the document has to be read afterwards, which costs a round trip.
    [[nodiscard]] virtual bool needs_document() const = 0;
    /// Returns whether a command of its own is better than a batch of one: it returns more information, or returns it
    /// sooner.
    [[nodiscard]] virtual bool prefers_own_command() const { return needs_document(); }

    // Results of the batched statement.
    /// Reports an error. It concerns either all statements, of which some may have been carried out, or only this
    /// statement, which has changed nothing.
    void on_error(const answer& result);
    /// Reports that the statement failed on purpose, and has changed nothing.
    virtual void on_refused() = 0;
    /// Reports that the statement was carried out.
    virtual void on_done() = 0;
    /// Reports that the statement was carried out, for an operation that needs its document.
    /// \param now the document after the update
    virtual void on_document(const lock_view& now) = 0;
    /// Reports that the statement was carried out, but that the document could not be read.
    virtual void on_document_unknown(const answer& result) = 0;

private:
    std::weak_ptr<batch> batch_;
};

} // namespace colock::inline v0::mongo::detail
