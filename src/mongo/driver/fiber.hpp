// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/context/fiber.hpp>

#include <cstddef>
#include <functional>

namespace colock::mongo::detail {

/// Runs code that would block a thread, in the frames of a library that knows no coroutines: on a stack of its own,
/// where it can be suspended instead.
///
/// Not Boost.Asio's: that ends a fiber whose context dies by an exception through those frames.
///
/// Thread safety: none. It may be resumed by another thread than last time.
class fiber
{
public:
    /// What fits on the stack; below it is a page that no one may touch.
    static constexpr std::size_t stack_size = std::size_t{64} * 1024;

    /// \param body begins at the first `resume`. Must not throw.
    explicit fiber(std::function<void()> body);
    /// It has ended, or was never resumed.
    ~fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    /// From outside, until it suspends or has ended.
    void resume();
    /// From inside, until it is resumed.
    void suspend();

    /// It is between two suspensions.
    [[nodiscard]] bool running() const noexcept { return running_; }
    [[nodiscard]] bool ended() const noexcept { return ended_; }

private:
    /// What a sanitizer is told of two stacks; nothing of it is there without one.
    struct switches;

    boost::context::fiber run(boost::context::fiber&& caller);

    const std::function<void()> body_;
    bool running_ = false;
    bool ended_ = false;

    // Of the stack, and of whoever has resumed it.
    const void* stack_end_ = nullptr;
    std::size_t stack_bytes_ = 0;
    const void* callers_end_ = nullptr;
    std::size_t callers_size_ = 0;
    void* tsan_own_ = nullptr;
    void* tsan_caller_ = nullptr;

    boost::context::fiber caller_;
    boost::context::fiber inside_;
};

} // namespace colock::mongo::detail
