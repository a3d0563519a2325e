// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/templates/expressions.hpp"

namespace colock::inline v0::mongo::detail::templates {

// Texts of the commands and statements that extend locks, or only count a request. They are documented at `commands`.

[[nodiscard]] string extend_exclusive(bool has_ttl);
[[nodiscard]] string extend_shared(bool has_ttl);
[[nodiscard]] string extend_group_exclusive();
[[nodiscard]] string extend_group_shared();
[[nodiscard]] string touch_exclusive();
[[nodiscard]] string touch_shared();

} // namespace colock::inline v0::mongo::detail::templates
