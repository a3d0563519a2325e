// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// Library for LD_PRELOAD that sets the wall clock of a program ahead, but not its monotonic clock and timers. The
// offset is COLOCK_CLOCK_AHEAD seconds plus the milliseconds in the file COLOCK_CLOCK_FILE, which may change (see
// movable_clock.hpp). libfaketime is not used because it also intercepts all waits: with it a Java virtual machine
// takes seconds to start, and sometimes never starts.

#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

const std::int64_t* map_file()
{
    static constexpr std::int64_t none = 0;
    const char* const name = std::getenv("COLOCK_CLOCK_FILE");
    const int file = name ? ::open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return &none;
    void* const mapped = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    return mapped == MAP_FAILED ? &none : static_cast<const std::int64_t*>(mapped);
}

/// Offset in milliseconds.
std::int64_t ahead()
{
    static const std::int64_t fixed = [] {
        const char* const value = std::getenv("COLOCK_CLOCK_AHEAD");
        return value ? std::int64_t{1000} * std::atol(value) : 0;
    }();
    static const std::int64_t* const moved = map_file();
    return fixed + __atomic_load_n(moved, __ATOMIC_RELAXED);
}

timespec shifted()
{
    constexpr std::int64_t second = 1'000'000'000;
    timespec now{};
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    const auto read = now.tv_sec * second + now.tv_nsec + ahead() * 1'000'000;
    return {.tv_sec = read / second, .tv_nsec = read % second};
}

} // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
    *now = shifted();
    return 0;
}

int gettimeofday(timeval* now, void*) noexcept
{
    const auto read = shifted();
    *now = {read.tv_sec, static_cast<suseconds_t>(read.tv_nsec / 1000)};
    return 0;
}

time_t time(time_t* now) noexcept
{
    const auto read = shifted().tv_sec;
    if (now)
        *now = read;
    return read;
}
}
