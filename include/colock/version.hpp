// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

// The version of these headers. CMakeLists.txt reads it from here.
/// Major version of these headers.
#define COLOCK_VERSION_MAJOR 0
/// Minor version of these headers.
#define COLOCK_VERSION_MINOR 1
/// Patch version of these headers.
#define COLOCK_VERSION_PATCH 0

/// The version of these headers as one number, for comparisons by the preprocessor: 10203 is version 1.2.3.
#define COLOCK_VERSION (COLOCK_VERSION_MAJOR * 10000 + COLOCK_VERSION_MINOR * 100 + COLOCK_VERSION_PATCH)

namespace colock::inline v0 {

/// Returns the version of the library that the program is linked with, such as "0.1.0". It differs from that of the
/// headers if a shared library was replaced after the program was compiled.
///
/// Thread safety: may be called from any thread.
COLOCK_EXPORT [[nodiscard]] const char* version() noexcept;

} // namespace colock::inline v0
