// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/templates/expressions.hpp"

namespace colock::inline v0::mongo::detail::templates {

// Texts of the commands that replace the holder of a held lock by another holder. They are documented at `commands`.

[[nodiscard]] string hand_over(bool has_ttl);
[[nodiscard]] string adopt_exclusive(bool has_ttl);
[[nodiscard]] string adopt_shared(bool has_ttl);

} // namespace colock::inline v0::mongo::detail::templates
