// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <memory>
#include <string_view>

namespace prove {

/// The faults of a lock service that the checker has to find, see docs/testing.md.
[[nodiscard]] bool is_sabotage(std::string_view name);

/// Returns an adapter that deviates from the contract as `name` says, or `backend` itself if the name is empty.
[[nodiscard]] std::shared_ptr<colock::adapter> sabotaged(
    std::shared_ptr<colock::adapter> backend, std::string_view name);

} // namespace prove
