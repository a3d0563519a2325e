// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/fiber.hpp"

#include <boost/assert.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <cstddef>
#include <memory>
#include <utility>

// GCC defines a macro for each sanitizer, Clang reports a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COLOCK_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define COLOCK_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define COLOCK_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define COLOCK_THREAD_SANITIZER
#endif

#ifdef COLOCK_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef COLOCK_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace colock::inline v0::mongo::detail {

/// AddressSanitizer needs a call on the old stack before each switch, and one on the new stack after it.
/// ThreadSanitizer needs one call before each switch.
struct fiber::sanitizer_hooks
{
#ifdef COLOCK_ADDRESS_SANITIZER
    static void begin_asan_switch(void** saved, const void* stack_end, std::size_t size)
    {
        __sanitizer_start_switch_fiber(saved, stack_end, size);
    }
    static void finish_asan_switch(void* saved, const void** previous_stack_end, std::size_t* previous_stack_size)
    {
        __sanitizer_finish_switch_fiber(saved, previous_stack_end, previous_stack_size);
    }
#else
    static void begin_asan_switch(void**, const void*, std::size_t) {}
    static void finish_asan_switch(void*, const void**, std::size_t*) {}
#endif
#ifdef COLOCK_THREAD_SANITIZER
    static void* make_tsan_fiber() { return __tsan_create_fiber(0); }
    static void destroy_tsan_fiber(void* own) { __tsan_destroy_fiber(own); }
    static void* current_tsan_fiber() { return __tsan_get_current_fiber(); }
    static void switch_tsan_fiber(void* other) { __tsan_switch_to_fiber(other, 0); }
#else
    static void* make_tsan_fiber() { return nullptr; }
    static void destroy_tsan_fiber(void*) {}
    static void* current_tsan_fiber() { return nullptr; }
    static void switch_tsan_fiber(void*) {}
#endif
};

fiber::fiber(std::function<void()> body) : body_(std::move(body)), tsan_own_(sanitizer_hooks::make_tsan_fiber())
{
    boost::context::protected_fixedsize_stack allocator(stack_size);
    auto stack = allocator.allocate();
    stack_end_ = static_cast<const std::byte*>(stack.sp) - stack.size;
    stack_bytes_ = stack.size;
    // Boost.Context takes the memory for its own data from the stack.
    context_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
        allocator, [this](boost::context::fiber&& caller) { return run(std::move(caller)); });
}

fiber::~fiber()
{
    BOOST_ASSERT(!running_ && (ended_ || !caller_));
    sanitizer_hooks::destroy_tsan_fiber(tsan_own_);
}

boost::context::fiber fiber::run(boost::context::fiber&& caller)
{
    sanitizer_hooks::finish_asan_switch(nullptr, &callers_end_, &callers_size_);
    caller_ = std::move(caller);
    body_();
    running_ = false;
    ended_ = true;
    // The first argument is null, because nothing on this stack is needed any more.
    sanitizer_hooks::begin_asan_switch(nullptr, callers_end_, callers_size_);
    return std::move(caller_);
}

void fiber::resume()
{
    BOOST_ASSERT(!running_ && !ended_);
    running_ = true;
    void* saved = nullptr;
    tsan_caller_ = sanitizer_hooks::current_tsan_fiber();
    sanitizer_hooks::begin_asan_switch(&saved, stack_end_, stack_bytes_);
    sanitizer_hooks::switch_tsan_fiber(tsan_own_);
    context_ = std::move(context_).resume();
    // `suspend` reports its own switch. A fiber that ends cannot, because `run` still has to return on the fiber's
    // stack. So its switch is reported here.
    if (ended_)
        sanitizer_hooks::switch_tsan_fiber(tsan_caller_);
    sanitizer_hooks::finish_asan_switch(saved, nullptr, nullptr);
}

void fiber::suspend()
{
    BOOST_ASSERT(running_);
    running_ = false;
    void* saved = nullptr;
    sanitizer_hooks::begin_asan_switch(&saved, callers_end_, callers_size_);
    sanitizer_hooks::switch_tsan_fiber(tsan_caller_);
    caller_ = std::move(caller_).resume();
    sanitizer_hooks::finish_asan_switch(saved, &callers_end_, &callers_size_);
}

} // namespace colock::inline v0::mongo::detail
