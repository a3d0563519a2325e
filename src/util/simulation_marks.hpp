// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

/// \file
/// Marks for the simulator in test/simulation, which alone is compiled with COLOCK_SIMULATION. In every other build the
/// marks are nothing.
///
/// - `COLOCK_DEFECT(name)` is a condition, and is true if the simulator puts back the defect of this name, to show that
///   it finds the defect. In every other build it is the constant false.
/// - `COLOCK_SOMETIMES(name)` is an expression that marks a rare path. The simulator reports the paths that it never
///   reached.
#ifdef COLOCK_SIMULATION

#include <string_view>

namespace colock::inline v0::detail {

/// The name of the defect that is put back; empty for none.
inline std::string_view active_defect;

inline constexpr unsigned max_rare_paths = 64;

/// A rare path of the program. Registered before main().
struct rare_path
{
    explicit rare_path(const char* name) noexcept;

    const char* const name;
    const rare_path* const next;
    const unsigned number;
    bool is_reached = false;
};

inline const rare_path* rare_paths = nullptr;

inline rare_path::rare_path(const char* name) noexcept
    : name(name), next(rare_paths), number(rare_paths ? rare_paths->number + 1 : 0)
{
    rare_paths = this;
}

template <auto Name>
inline rare_path rare_path_of{Name()};

} // namespace colock::inline v0::detail

#define COLOCK_DEFECT(name) (::colock::detail::active_defect == #name)
#define COLOCK_SOMETIMES(name) static_cast<void>(::colock::detail::rare_path_of<[] { return #name; }>.is_reached = true)

#else

#define COLOCK_DEFECT(name) false
#define COLOCK_SOMETIMES(name) static_cast<void>(0)

#endif
