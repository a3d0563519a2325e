// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/joint.hpp"
#include "mongo/lock_view.hpp"
#include "mongo/operations/command_operation.hpp"

#include <memory>
#include <string_view>

namespace colock::mongo::detail {

/// One that may go as a statement of an update, with others. It goes alone where no other asks at that moment, and
/// whenever it is asked anew.
class joining_operation : public command_operation
{
public:
    using command_operation::command_operation;

    [[nodiscard]] bool joins() const noexcept override { return true; }
    void start() final;
    void fail(delivery how, failure_ptr why) final;

    void go_alone() { begin(); }
    void travel_with(const std::shared_ptr<joint>& others) { travels_with_ = others; }

    [[nodiscard]] virtual std::string_view key() const noexcept = 0;
    /// The others may ask for what it had.
    [[nodiscard]] virtual bool gives_back() const noexcept = 0;
    /// Adds its statement.
    virtual void write(bson_t& to) = 0;

    // What has become of that.
    /// The server, or the driver, has told it of all statements: some may have been carried out, or it is certain that
    /// none was.
    void hear_of_all(const answer& failed);
    /// The server tells it of this one: it has changed nothing.
    virtual void hear_of_this(const answer& failed);
    /// \param now its document afterwards
    virtual void hear_done(const lock_view& now) = 0;
    /// It was done, but nobody knows its document.
    virtual void hear_unseen(const answer& failed) = 0;

private:
    std::weak_ptr<joint> travels_with_;
};

} // namespace colock::mongo::detail
