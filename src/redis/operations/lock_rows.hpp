// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"
#include "redis/settings.hpp"

#include <colock/spi/outcome.hpp>
#include <colock/status.hpp>

#include <vector>

namespace colock::inline v0::redis::detail {

/// Appends the holders that a script has returned. Returns the reason why the reply cannot be used, or null.
[[nodiscard]] failure_ptr add_rows(const settings& config, const reply& answer, std::vector<lock_status>& to);

} // namespace colock::inline v0::redis::detail
