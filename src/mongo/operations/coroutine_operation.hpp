// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/operations/command_operation.hpp"
#include "remote/requests/coroutine.hpp"

#include <utility>

namespace colock::inline v0::mongo::detail {

using remote::coroutine;

/// An operation of several commands, written as one coroutine, `run`.
///
/// When the operation begins again, the suspended coroutine is destroyed and `run` is called again. Results that must
/// survive this have to be stored in members.
class coroutine_operation : public command_operation
{
    /// \param send sends a command whose answer is passed to `resume`
    template <class Send>
    [[nodiscard]] auto answer_after(Send send)
    {
        return suspension_.suspend(std::move(send), [this]() -> const answer& { return *result_; });
    }

protected:
    using command_operation::command_operation;

    [[nodiscard]] virtual coroutine run() = 0;

    // `co_await` of these results sends a command, and returns its answer after the command was carried out. The
    // reference is valid until the coroutine is suspended again.

    [[nodiscard]] auto reply_to(document request)
    {
        return answer_after(
            [this, request = std::move(request)]() mutable { ask(std::move(request), &coroutine_operation::resume); });
    }
    /// Like `reply_to`, for a command that changes nothing.
    [[nodiscard]] auto reply_to_read(document request)
    {
        return answer_after([this, request = std::move(request)]() mutable {
            ask_read(std::move(request), &coroutine_operation::resume);
        });
    }
    /// Reads the server's time, as `read_clock` does.
    [[nodiscard]] auto clock_reply()
    {
        return answer_after([this] { read_clock([this](const answer& result) { resume(result); }); });
    }
    /// Confirms the last answer, as `confirm` does.
    [[nodiscard]] auto confirmation()
    {
        return answer_after([this] { confirm(&coroutine_operation::resume); });
    }
    /// Confirms the result of a read, as `confirm_read` does.
    [[nodiscard]] auto read_confirmation()
    {
        return answer_after([this] { confirm_read(&coroutine_operation::resume); });
    }

private:
    void begin() final
    {
        frame_ = {};
        frame_ = run();
        frame_.start();
        suspension_.rethrow();
    }
    void resume(const answer& result)
    {
        result_ = &result;
        suspension_.resume();
    }

    const answer* result_ = nullptr;
    remote::suspension_point suspension_;
    coroutine frame_;
};

} // namespace colock::inline v0::mongo::detail
