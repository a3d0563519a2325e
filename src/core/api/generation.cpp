// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/generation.hpp>

#include <pthread.h>

#include <atomic>

namespace colock::inline v0::detail {

std::atomic<unsigned> generation{1};

namespace {

[[maybe_unused]] const bool fork_is_counted = [] {
    ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
    return true;
}();

} // namespace

} // namespace colock::inline v0::detail
