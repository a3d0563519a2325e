// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/context/fiber.hpp>

#include <cstddef>
#include <functional>

namespace colock::inline v0::mongo::detail {

/// Runs blocking code of a library that does not support coroutines. The code has a stack of its own, so it can be
/// suspended where it would block the thread.
///
/// Fibers of Boost.Asio are not suitable: when the context is destroyed, Asio ends a fiber with an exception, which
/// would pass through the frames of the library.
///
/// Thread safety: none. Each call of `resume` may be made by a different thread.
class fiber
{
public:
    /// Size of the stack in bytes. A guard page lies below the stack.
    static constexpr std::size_t stack_size = std::size_t{64} * 1024;

    /// \param body function that the first `resume` starts. Must not throw.
    explicit fiber(std::function<void()> body);
    /// The fiber must have ended, or must never have been resumed.
    ~fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    /// Runs the fiber until it suspends or ends. Must be called from outside of the fiber.
    void resume();
    /// Suspends the fiber until it is resumed. Must be called from inside of the fiber.
    void suspend();

    /// Returns whether the fiber is executing.
    [[nodiscard]] bool running() const noexcept { return running_; }
    [[nodiscard]] bool ended() const noexcept { return ended_; }

private:
    /// Reports the stack switches to sanitizers. Does nothing in a build without them.
    struct sanitizer_hooks;

    boost::context::fiber run(boost::context::fiber&& caller);

    const std::function<void()> body_;
    bool running_ = false;
    bool ended_ = false;

    // Bounds of the fiber's stack and of the stack that resumed it, and the handles of both for ThreadSanitizer.
    const void* stack_end_ = nullptr;
    std::size_t stack_bytes_ = 0;
    const void* callers_end_ = nullptr;
    std::size_t callers_size_ = 0;
    void* tsan_own_ = nullptr;
    void* tsan_caller_ = nullptr;

    boost::context::fiber caller_;
    boost::context::fiber context_;
};

} // namespace colock::inline v0::mongo::detail
