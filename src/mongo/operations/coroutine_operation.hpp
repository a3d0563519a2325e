// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/operations/command_operation.hpp"
#include "remote/requests/coroutine.hpp"

#include <coroutine>
#include <utility>

namespace colock::inline v0::mongo::detail {

using remote::coroutine;

/// An operation of several commands, written as one coroutine, `run`.
///
/// When the operation begins again, the suspended coroutine is destroyed and `run` is called again. Results that must
/// survive this have to be stored in members.
class coroutine_operation : public command_operation
{
    struct awaited_answer
    {
        coroutine_operation& self;
        void (*send)(coroutine_operation& self);

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) const
        {
            self.waiting_ = waiting;
            // A command that fails at once resumes or destroys the coroutine, and this object with it.
            send(self);
        }
        const answer& await_resume() const noexcept { return *self.got_; }
    };

protected:
    using command_operation::command_operation;

    [[nodiscard]] virtual coroutine run() = 0;

    // `co_await` of these results sends a command, and returns its answer after the command was carried out. The
    // reference is valid until the coroutine is suspended again.

    [[nodiscard]] awaited_answer reply_to(document what)
    {
        unsent_ = std::move(what);
        return {*this, [](auto& self) { self.ask(std::move(self.unsent_), &coroutine_operation::resume); }};
    }
    /// Like `reply_to`, for a command that changes nothing.
    [[nodiscard]] awaited_answer reply_to_read(document what)
    {
        unsent_ = std::move(what);
        return {*this, [](auto& self) { self.ask_read(std::move(self.unsent_), &coroutine_operation::resume); }};
    }
    /// Reads the server's time, as `read_clock` does.
    [[nodiscard]] awaited_answer clock_reply()
    {
        return {*this, [](auto& self) { self.read_clock([&self](const answer& got) { self.resume(got); }); }};
    }
    /// Confirms the last answer, as `confirm` does.
    [[nodiscard]] awaited_answer confirmation()
    {
        return {*this, [](auto& self) { self.confirm(&coroutine_operation::resume); }};
    }
    /// Confirms the result of a read, as `confirm_read` does.
    [[nodiscard]] awaited_answer read_confirmation()
    {
        return {*this, [](auto& self) { self.confirm_read(&coroutine_operation::resume); }};
    }

private:
    void begin() final
    {
        frame_ = {};
        frame_ = run();
        frame_.start();
    }
    void resume(const answer& got)
    {
        got_ = &got;
        waiting_.resume();
    }

    document unsent_;
    const answer* got_ = nullptr;
    std::coroutine_handle<> waiting_;
    coroutine frame_;
};

} // namespace colock::inline v0::mongo::detail
