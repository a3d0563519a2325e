// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract/virtual_environment.hpp"

#include <colock/memory/adapter.hpp>

namespace colock::contract {

namespace {

const registration memory_backend({
    .name = "memory",
    .capabilities = {.shared = true,
        .semaphore = true,
        .no_ttl = true,
        .fifo = true,
        .fence = true,
        .list = true,
        .lists_fence = true,
        .events = true,
        .create_all = true,
        .groups = true,
        .extends_groups = true,
        .tickets = true,
        .immediate = true},
    // The store belongs to the adapter, so all "processes" of a case share one adapter.
    .make_environment = in_virtual_time(
        [](asio::io_context& io) { return [made = memory::make_adapter(io.get_executor())] { return made; }; }),
});

} // namespace

} // namespace colock::contract
