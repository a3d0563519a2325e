// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/version.hpp>

#define COLOCK_TEXT(number) COLOCK_TEXT_OF(number)
#define COLOCK_TEXT_OF(number) #number

namespace colock::inline v0 {

const char* version() noexcept
{
    return COLOCK_TEXT(COLOCK_VERSION_MAJOR) "." COLOCK_TEXT(COLOCK_VERSION_MINOR) "." COLOCK_TEXT(
        COLOCK_VERSION_PATCH);
}

} // namespace colock::inline v0
