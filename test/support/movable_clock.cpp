// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/movable_clock.hpp"

#include <atomic>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace colock::testing {

movable_clock::movable_clock(std::chrono::milliseconds ahead)
{
    const int file = ::open((folder_ / "ahead").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* shared = MAP_FAILED;
    if (file >= 0 && ::ftruncate(file, sizeof(*ahead_)) == 0)
        shared = ::mmap(nullptr, sizeof(*ahead_), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int why = errno;
    if (file >= 0)
        ::close(file);
    if (shared == MAP_FAILED)
        throw std::system_error(why, std::system_category(), "the file of a test's clock");
    ahead_ = static_cast<std::int64_t*>(shared);
    set_ahead(ahead);
}

movable_clock::~movable_clock()
{
    ::munmap(ahead_, sizeof(*ahead_));
}

std::vector<std::string> movable_clock::environment() const
{
    return {"LD_PRELOAD=" COLOCK_WRONG_CLOCK, "COLOCK_CLOCK_FILE=" + (folder_ / "ahead").string()};
}

void movable_clock::set_ahead(std::chrono::milliseconds by) noexcept
{
    std::atomic_ref(*ahead_).store(by.count());
}

} // namespace colock::testing
