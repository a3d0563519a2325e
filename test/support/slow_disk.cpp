// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// Library for LD_PRELOAD. It makes each disk synchronisation of a program COLOCK_DISK_DELAY milliseconds slower.

#include <chrono>
#include <cstdlib>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

void wait_for_disk()
{
    static const std::chrono::milliseconds delay{[] {
        const char* const value = std::getenv("COLOCK_DISK_DELAY");
        return value ? std::atol(value) : 0;
    }()};
    std::this_thread::sleep_for(delay);
}

} // namespace

extern "C" {

int fsync(int file)
{
    wait_for_disk();
    return static_cast<int>(::syscall(SYS_fsync, file));
}

int fdatasync(int file)
{
    wait_for_disk();
    return static_cast<int>(::syscall(SYS_fdatasync, file));
}
}
