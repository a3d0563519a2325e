// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/plan.hpp"

#include "simulation/seams.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace colock::simulation {

using namespace std::chrono_literals;

setting::setting(std::uint64_t seed)
{
    random_source random(seed);
    constexpr backend_kind kinds[] = {backend_kind::model, backend_kind::model, backend_kind::model,
        backend_kind::model, backend_kind::memory, backend_kind::quorum};
    kind = kinds[random.below(6)];
    can = {.fence = true, .list = true, .events = true};
    can.no_ttl = random.once_in(2);
    can.shared = can.semaphore = !random.once_in(4);
    can.fifo = random.once_in(3);
    can.events = !random.once_in(4);
    can.fence = !random.once_in(6);
    can.create_all = random.once_in(2);
    can.groups = can.extends_groups = random.once_in(2);
    can.tickets = random.once_in(2);
    can.expires = !random.once_in(6);
    has_faults = !random.once_in(4);
    ends_abruptly = random.once_in(8);
    has_observer = random.once_in(2);
    observer_is_slow = has_observer && random.once_in(4);
    reports_timeout = random.once_in(3);
    process_count = kind == backend_kind::memory ? 1 : 1 + random.below(3);
    lockers_per_process = 1 + random.below(2);
    key_count = 1 + random.below(4);
    operation_timeout = random.once_in(2) ? 2000ms : 700ms;
    min_delay = random.once_in(2) ? 200us : 2ms;
    max_delay = min_delay + random.between(1ms, 20ms);
    overtakes = random.once_in(3);
    if (kind == backend_kind::quorum)
        can = {.list = true, .tickets = true};
    if (kind == backend_kind::memory)
        can = {.shared = true,
            .semaphore = true,
            .no_ttl = true,
            .fifo = true,
            .fence = true,
            .list = true,
            .events = true,
            .create_all = true,
            .groups = true,
            .extends_groups = true,
            .tickets = true,
            .immediate = true};
}

namespace {

/// The steps, with their weights in the choice of a step.
constexpr struct
{
    const char* name;
    std::uint32_t weight;
} actions[] = {{"acquire", 30}, {"try_acquire", 12}, {"acquire_all", 12}, {"with_lock", 20}, {"callback", 10},
    {"release", 10}, {"extend", 8}, {"is_locked", 3}, {"wait_for_loss", 3}, {"transfer", 5}, {"grow_group", 4},
    {"group_by_id", 3}, {"break_lock", 4}, {"list", 2}, {"purge", 2}, {"shut_down", 1}, {"drop_locker", 1}, {"cut", 4},
    {"silence", 3}, {"slow_link", 3}, {"refuse", 2}};

} // namespace

const char* name_of(action what) noexcept
{
    return actions[static_cast<std::size_t>(what)].name;
}

plan make_plan(std::uint64_t seed)
{
    std::uint32_t total = 0;
    std::uint32_t acquires = 0;
    for (std::size_t n = 0; n < std::size(actions); ++n) {
        total += actions[n].weight;
        if (static_cast<action>(n) <= action::callback)
            acquires = total;
    }
    random_source random(seed + 1);
    plan result{.seed = seed};
    const auto add = [&](time_point from, time_point to, unsigned count, bool only_acquires) {
        for (unsigned n = 0; n < count; ++n) {
            auto place = random.below(only_acquires ? acquires : total);
            std::size_t what = 0;
            while (place >= actions[what].weight)
                place -= actions[what++].weight;
            result.steps.push_back({random.between(from.time_since_epoch(), to.time_since_epoch()),
                static_cast<action>(what), random.next()});
        }
    };
    add(time_point(1ms), calm_begins, 20 + random.below(180), false);
    add(calm_begins, quiet_begins, random.once_in(4) ? 300 + random.below(300) : random.below(100), true);
    std::ranges::sort(result.steps, {}, [](const step& each) { return std::pair(each.at, each.seed); });
    return result;
}

} // namespace colock::simulation
