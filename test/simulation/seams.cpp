// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/seams.hpp"

#include <colock/detail/generation.hpp>

#include "util/jitter.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace colock::simulation {

namespace {

/// Nanoseconds that all clocks show; negative while real time passes.
std::int64_t frozen_at = -1;
random_source random_bytes{0};
random_source random_jitter{0};
/// The context whose next timer is looked for; it is stopped as soon as it would block.
asio::io_context* probed = nullptr;
std::optional<lease_clock::duration> probe_result;

} // namespace

frozen_time::frozen_time(std::uint64_t seed)
{
    random_bytes = random_source(seed);
    frozen_at = 0;
    // Discards the random bytes that were read before.
    detail::generation.fetch_add(1);
    random_jitter = random_source(seed);
}

frozen_time::~frozen_time()
{
    frozen_at = -1;
    detail::generation.fetch_add(1);
}

void frozen_time::set(lease_clock::time_point now) noexcept
{
    frozen_at = now.time_since_epoch().count();
}

std::optional<lease_clock::duration> until_next_timer(asio::io_context& io)
{
    probe_result.reset();
    probed = &io;
    static_cast<void>(io.run_one());
    probed = nullptr;
    io.restart();
    return probe_result;
}

} // namespace colock::simulation

using namespace colock::simulation;

// Takes the place of src/util/jitter.cpp.
colock::lease_clock::duration colock::detail::spread(lease_clock::duration delay, double fraction)
{
    if (fraction <= 0.0)
        return delay;
    const double factor = 1.0 + fraction * (static_cast<double>(random_jitter.below(2'000'001)) * 1e-6 - 1.0);
    const double result = static_cast<double>(delay.count()) * factor;
    return result >= static_cast<double>(lease_clock::duration::max().count())
               ? lease_clock::duration::max()
               : lease_clock::duration(static_cast<lease_clock::rep>(result));
}

extern "C" {

int clock_gettime(clockid_t clock, timespec* result) noexcept
{
    if (frozen_at < 0 || (clock != CLOCK_BOOTTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
        return static_cast<int>(::syscall(SYS_clock_gettime, clock, result));
    result->tv_sec = frozen_at / 1'000'000'000;
    result->tv_nsec = frozen_at % 1'000'000'000;
    return 0;
}

ssize_t getrandom(void* buffer, size_t length, unsigned flags)
{
    if (frozen_at < 0)
        return ::syscall(SYS_getrandom, buffer, length, flags);
    for (size_t done = 0; done < length; done += sizeof(std::uint64_t)) {
        const auto word = random_bytes.next();
        std::memcpy(static_cast<char*>(buffer) + done, &word, std::min(sizeof(word), length - done));
    }
    return static_cast<ssize_t>(length);
}

// Without this descriptor, Asio looks at its timers whenever it polls, and passes the time until the next one to
// epoll_wait.
int timerfd_create(int /*clock*/, int /*flags*/) noexcept
{
    errno = ENOSYS;
    return -1;
}

int epoll_wait(int descriptor, epoll_event* events, int max_events, int timeout)
{
    if (frozen_at < 0)
        return static_cast<int>(::syscall(SYS_epoll_pwait, descriptor, events, max_events, timeout, nullptr, 0));
    if (probed) {
        constexpr int asio_limit = 5 * 60 * 1000;
        if (timeout >= 0 && timeout < asio_limit)
            probe_result = std::chrono::milliseconds(timeout);
        probed->stop();
    }
    return 0;
}
}
