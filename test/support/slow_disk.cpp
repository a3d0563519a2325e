// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// Loaded before a program's own libraries, it makes each wait of that program for the disk take COLOCK_DISK_DELAY
// milliseconds longer.

#include <chrono>
#include <cstdlib>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

void wait_for_disk()
{
    static const std::chrono::milliseconds delay{[] {
        const char* const told = std::getenv("COLOCK_DISK_DELAY");
        return told ? std::atol(told) : 0;
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
