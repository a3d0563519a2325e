// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// Loaded before a program's own libraries, it sets the clock of that program COLOCK_CLOCK_AHEAD seconds ahead, and
// leaves alone what time takes. libfaketime, which does the same, also stands between a program and all that waits:
// with it a Java machine takes seconds to start, and some never do.

#include <cstdlib>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

time_t ahead()
{
    static const time_t seconds = [] {
        const char* const told = std::getenv("COLOCK_CLOCK_AHEAD");
        return told ? std::atol(told) : 0;
    }();
    return seconds;
}

timespec shifted()
{
    timespec now{};
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    now.tv_sec += ahead();
    return now;
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
