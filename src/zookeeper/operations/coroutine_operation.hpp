// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/coroutine.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <coroutine>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

using remote::coroutine;

/// An operation of several requests, written as one coroutine, `run`.
///
/// If a request cannot be sent, or its session has ended, the operation begins again: the coroutine is destroyed, and
/// `run` is called once more. What has to survive this is kept in members or in the claim's state.
class coroutine_operation : public request_operation
{
protected:
    using request_operation::request_operation;

    /// The reply to one request. The coroutine passes `expect()` to the request as its completion, and `co_await`s this
    /// object at once or after it has made other requests. A reply that arrives after this object was destroyed is
    /// ignored.
    class pending_reply
    {
    public:
        explicit pending_reply(coroutine_operation& operation) noexcept
            : operation_(operation), number_(++operation.replies_), next_(std::exchange(operation.pending_, this))
        {
        }
        pending_reply(const pending_reply&) = delete;
        pending_reply& operator=(const pending_reply&) = delete;
        ~pending_reply()
        {
            auto** at = &operation_.pending_;
            while (*at != this)
                at = &(*at)->next_;
            *at = next_;
        }

        /// Returns the completion for the request. May be called once.
        [[nodiscard]] reply_handler expect()
        {
            is_expected_ = true;
            return [self = boost::intrusive_ptr(&operation_), number = number_, round = operation_.round()](
                       reply reply) { self->answered(number, round, std::move(reply)); };
        }
        [[nodiscard]] bool is_expected() const noexcept { return is_expected_; }

        [[nodiscard]] bool await_ready() const noexcept { return reply_.has_value(); }
        void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
        const reply& await_resume() const noexcept { return *reply_; }

    private:
        friend class coroutine_operation;

        coroutine_operation& operation_;
        const std::uint64_t number_;
        pending_reply* next_;
        std::optional<reply> reply_;
        std::coroutine_handle<> waiting_;
        bool is_expected_ = false;
    };

    /// Suspends the coroutine, which is never resumed.
    using stop = std::suspend_always;

    [[nodiscard]] virtual coroutine run() = 0;

    /// `co_await connected()` returns the requests of the current session. If no request can be sent now, the operation
    /// begins again later.
    [[nodiscard]] auto connected() noexcept
    {
        struct awaitable
        {
            coroutine_operation& self;
            requests* sender;

            [[nodiscard]] bool await_ready() const noexcept { return sender != nullptr; }
            void await_suspend(std::coroutine_handle<>) const { self.restart(); }
            requests& await_resume() const noexcept { return *sender; }
        };
        return awaitable{*this, sessions().get_requests()};
    }
    /// `co_await sync(path)`: later reads return a state that is not older than this request, see `requests::sync`.
    /// Ends the operation if the server has not carried it out.
    coroutine sync(std::string path)
    {
        pending_reply synced(*this);
        (co_await connected()).sync(path, synced.expect());
        const reply& reply = co_await synced;
        if (!reply.ok() && reply.outcome != status::no_node)
            co_await fail_with(reply);
    }
    /// `co_await fail_with(reply)` ends the operation.
    [[nodiscard]] stop fail_with(const reply& reply)
    {
        // The answer may belong to an object that does not live until the failure is reported.
        const auto copy = reply;
        end_failed(copy);
        return {};
    }
    /// `co_await begin_again()` begins the operation again as soon as requests can be sent.
    [[nodiscard]] stop begin_again()
    {
        restart();
        return {};
    }

private:
    void begin() final
    {
        frame_ = {};
        frame_ = run();
        frame_.start();
    }

    void answered(std::uint64_t number, unsigned round, reply reply)
    {
        auto* found = pending_;
        while (found && found->number_ != number)
            found = found->next_;
        if (!found || !accepts(reply, round))
            return;
        found->reply_.emplace(std::move(reply));
        if (found->waiting_)
            found->waiting_.resume();
    }

    std::uint64_t replies_ = 0;
    pending_reply* pending_ = nullptr;
    coroutine frame_;
};

} // namespace colock::inline v0::zookeeper::detail
