// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Refuses compilers, language standards and Boosts with which colock does not work. CMake checks the same, but programs
// are also compiled without it. Every public header includes this file first, so that its message is the first one. The
// syntax is that of C++98, which every compiler reads.
#pragma once

// clang-format off: an #error is one line.

#if defined(__clang__)
#if __clang_major__ < 16
#pragma message("found: Clang " __clang_version__)
#error "colock needs Clang 16 or later, or GCC 13 or later, and this is an older Clang, which does not have all of C++20: compile with a newer one (on Debian 12: clang++-19)"
#endif
#elif defined(__GNUC__)
#if __GNUC__ < 13
#pragma message("found: GCC " __VERSION__)
#error "colock needs GCC 13 or later, or Clang 16 or later, and this is an older GCC, which compiles some coroutines wrongly: compile with a newer one (on Debian 12: clang++-19)"
#endif
#endif

#if __cplusplus < 202002L
#error "colock needs C++20, and this program is compiled for an older standard: compile with -std=c++20 or a later one (CMake: target_compile_features(TARGET PRIVATE cxx_std_20))"
#endif

#include <boost/version.hpp>

#if BOOST_VERSION < 108300
#pragma message("found: Boost " BOOST_LIB_VERSION)
#error "colock needs Boost 1.83 or later, and the compiler finds an older Boost first: put the newer one in front of it with -isystem, -I or CMAKE_PREFIX_PATH"
#endif

#include <colock/detail/boost_of_build.hpp>
