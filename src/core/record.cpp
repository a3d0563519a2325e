// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/record.hpp"

#include "core/core.hpp"

#include <boost/asio/recycling_allocator.hpp>

namespace colock::detail {

namespace {

using recycler = asio::recycling_allocator<unsigned char>;

} // namespace

record::record(const std::shared_ptr<core>& owner, claim_request request)
    : claim(std::move(request)), owner_core(owner.get()), weak_core(owner)
{
}

void* record::operator new(std::size_t size)
{
    return recycler().allocate(size);
}

void record::operator delete(void* memory, std::size_t size) noexcept
{
    recycler().deallocate(static_cast<unsigned char*>(memory), size);
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
