// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <new>

namespace colock::inline v0::detail {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COLOCK_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define COLOCK_ADDRESS_SANITIZER
#endif

/// Keeps the memory of destroyed objects for new objects of the same thread. All blocks have the same size. Asio's
/// recycling allocator takes three times as long, and works only on threads that run a context.
///
/// Each block starts at a cache line. Otherwise an acquire and release may take a tenth longer, depending on the state
/// of the heap.
class spare_blocks
{
public:
    constexpr spare_blocks() = default;
    spare_blocks(const spare_blocks&) = delete;
    spare_blocks& operator=(const spare_blocks&) = delete;
    ~spare_blocks()
    {
        while (void* block = take())
            ::operator delete(block, cache_line);
        // Objects may be destroyed on this thread even after this destructor.
        room_ = 0;
    }

    /// Returns memory for one object. `size` must be the same in every call.
    [[nodiscard]] void* allocate(std::size_t size)
    {
        void* const spare = take();
        return spare ? spare : ::operator new(size, cache_line);
    }
    void deallocate(void* memory) noexcept
    {
        if (room_ == 0) {
            ::operator delete(memory, cache_line);
        } else {
            --room_;
            first_ = new (memory) link{first_};
        }
    }

private:
    static constexpr std::align_val_t cache_line{64};

    struct link
    {
        link* next;
    };
    [[nodiscard]] void* take() noexcept
    {
        link* const block = first_;
        if (!block)
            return nullptr;
        first_ = block->next;
        ++room_;
        return block;
    }

#ifdef COLOCK_ADDRESS_SANITIZER
    // Reuse is disabled, because a reused block would hide a use after free.
    static constexpr unsigned max_spare = 0;
#else
    static constexpr unsigned max_spare = 64;
#endif
    link* first_ = nullptr;
    unsigned room_ = max_spare;
};

} // namespace colock::inline v0::detail
