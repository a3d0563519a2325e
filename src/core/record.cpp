// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/record.hpp"

#include "core/core.hpp"

#include <cstddef>
#include <new>

namespace colock::detail {

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COLOCK_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define COLOCK_ADDRESS_SANITIZER
#endif

#ifdef COLOCK_ADDRESS_SANITIZER
// A block that is used again at once would hide a use after free.
constexpr unsigned most_spare_blocks = 0;
#else
constexpr unsigned most_spare_blocks = 64;
#endif

/// The memory of records that have ended, for the next ones of the same thread. Asio's recycling allocator does the
/// same in three times the time, and only on threads that run a context.
class spare_blocks
{
public:
    constexpr spare_blocks() = default;
    spare_blocks(const spare_blocks&) = delete;
    spare_blocks& operator=(const spare_blocks&) = delete;
    ~spare_blocks()
    {
        while (void* block = take())
            ::operator delete(block);
        // Records may die even later on this thread.
        room_ = 0;
    }

    [[nodiscard]] void* take() noexcept
    {
        link* const block = first_;
        if (!block)
            return nullptr;
        first_ = block->next;
        ++room_;
        return block;
    }
    [[nodiscard]] bool keep(void* memory) noexcept
    {
        if (room_ == 0)
            return false;
        --room_;
        first_ = new (memory) link{first_};
        return true;
    }

private:
    struct link
    {
        link* next;
    };
    link* first_ = nullptr;
    unsigned room_ = most_spare_blocks;
};

constinit thread_local spare_blocks spares;

} // namespace

record::record(const std::shared_ptr<core>& owner, claim_request request)
    : claim(std::move(request)), owner_core(owner.get()), weak_core(owner)
{
}

void* record::operator new(std::size_t size)
{
    void* const spare = spares.take();
    return spare ? spare : ::operator new(size);
}

void record::operator delete(void* memory, std::size_t) noexcept
{
    if (!spares.keep(memory))
        ::operator delete(memory);
}

void record::at_risk() noexcept
{
    if (const auto alive = weak_core.lock(); alive && where() == phase::held)
        alive->on_risk(ptr(this));
}

void record::lost(lost_reason why) noexcept
{
    if (const auto alive = weak_core.lock(); alive && where() == phase::held)
        alive->declare_lost(ptr(this), why);
}

void record::lease_moved() noexcept
{
    if (const auto alive = weak_core.lock(); alive && where() == phase::held)
        alive->on_lease_moved(ptr(this));
}

void record::on_created(create_outcome result)
{
    if (where() != phase::ended)
        owner_core->on_created(ptr(this), std::move(result));
}

void record::on_given_back(release_outcome result)
{
    if (where() != phase::ended)
        owner_core->on_given_back(ptr(this), std::move(result));
}

void record::on_extended(extend_outcome result)
{
    if (where() != phase::ended)
        owner_core->on_extended(ptr(this), std::move(result));
}

} // namespace colock::detail
