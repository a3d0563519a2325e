// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation_allocation.hpp"

#include <coroutine>
#include <utility>

namespace colock::inline v0::remote {

/// A coroutine that is a part of an operation. It starts when it is awaited, or when its operation starts it, and is
/// owned by the caller's frame or by the operation. It is destroyed with its owner, wherever it is suspended.
///
/// Not an `asio::awaitable`: an operation that begins again destroys its suspended coroutine, and a context that shuts
/// down destroys it with the operation, without resuming it.
class [[nodiscard]] coroutine
{
public:
    struct promise_type;
    using handle_type = std::coroutine_handle<promise_type>;

    struct promise_type : operation_allocation
    {
        struct resume_caller
        {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(handle_type ended) const noexcept { return ended.promise().caller; }
            void await_resume() const noexcept {}
        };

        coroutine get_return_object() noexcept { return coroutine(handle_type::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        resume_caller final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        /// The exception reaches the function that has resumed the operation.
        void unhandled_exception() const { throw; }

        std::coroutine_handle<> caller = std::noop_coroutine();
    };

    coroutine() noexcept = default;
    coroutine(coroutine&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    coroutine& operator=(coroutine&& other) noexcept
    {
        coroutine(std::move(other)).swap(*this);
        return *this;
    }
    ~coroutine()
    {
        if (handle_)
            handle_.destroy();
    }

    /// Runs the coroutine to its first suspension. Must be called once, and only for a coroutine that is not awaited.
    void start() { handle_.resume(); }

    // Awaiter functions, for another coroutine that awaits this one.
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept
    {
        handle_.promise().caller = caller;
        return handle_;
    }
    void await_resume() const noexcept {}

private:
    explicit coroutine(handle_type own) noexcept : handle_(own) {}
    void swap(coroutine& other) noexcept { std::swap(handle_, other.handle_); }

    handle_type handle_ = nullptr;
};

} // namespace colock::inline v0::remote
