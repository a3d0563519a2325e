// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation_allocation.hpp"

#include <coroutine>
#include <exception>
#include <utility>

namespace colock::inline v0::remote {

/// A coroutine that is a part of an object, such as an operation. It starts when it is awaited, or when its owner
/// starts it. It is owned by the frame of its caller or by that object, and is destroyed with its owner, wherever it is
/// suspended.
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
            std::coroutine_handle<> await_suspend(handle_type handle) const noexcept { return handle.promise().caller; }
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
    explicit coroutine(handle_type handle) noexcept : handle_(handle) {}
    void swap(coroutine& other) noexcept { std::swap(handle_, other.handle_); }

    handle_type handle_ = nullptr;
};

/// Where the coroutine of an object is suspended until a handler resumes it. Has to outlive the coroutine.
///
/// Thread safety: none.
class suspension_point
{
public:
    /// `co_await` of the result suspends the current coroutine, and then calls `begin`, which may resume or destroy the
    /// coroutine. If `begin` throws, the coroutine stays suspended, because what `begin` has started may still resume
    /// it. The exception is thrown by `resume` or `rethrow`.
    /// \param get the `co_await` returns the result of this function
    template <class Begin, class Get>
    [[nodiscard]] auto suspend(Begin begin, Get get)
    {
        return awaitable<Begin, Get>(*this, std::move(begin), std::move(get));
    }
    template <class Begin>
    [[nodiscard]] auto suspend(Begin begin)
    {
        return suspend(std::move(begin), [] {});
    }
    /// Resumes the coroutine. Returns false if none is suspended here: it was destroyed, or an exception has ended it.
    bool resume()
    {
        if (!waiting_)
            return false;
        std::exchange(waiting_, nullptr).resume();
        rethrow();
        return true;
    }
    /// Throws the exception of a `begin`, if there is one. Must be called after the coroutine was started.
    void rethrow()
    {
        if (auto thrown = std::exchange(thrown_, nullptr))
            std::rethrow_exception(std::move(thrown));
    }

private:
    template <class Begin, class Get>
    class awaitable
    {
    public:
        awaitable(suspension_point& point, Begin begin, Get get)
            : point_(point), begin_(std::move(begin)), get_(std::move(get))
        {
        }
        awaitable(const awaitable&) = delete;
        awaitable& operator=(const awaitable&) = delete;
        ~awaitable()
        {
            if (own_ && point_.waiting_ == own_)
                point_.waiting_ = nullptr;
        }

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> suspended)
        {
            auto& point = point_;
            own_ = point.waiting_ = suspended;
            try {
                // Moved to the stack, because the call may destroy this object with the coroutine.
                auto function = std::move(begin_);
                function();
            } catch (...) {
                point.thrown_ = std::current_exception();
            }
        }
        decltype(auto) await_resume() const { return get_(); }

    private:
        suspension_point& point_;
        Begin begin_;
        Get get_;
        std::coroutine_handle<> own_;
    };

    std::coroutine_handle<> waiting_;
    std::exception_ptr thrown_;
};

} // namespace colock::inline v0::remote
