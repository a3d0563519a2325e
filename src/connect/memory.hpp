// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/connect.hpp>

namespace colock::inline v0::detail {

/// The memory backend, which every program that uses make_adapter contains.
extern const url_backend memory_by_url;

} // namespace colock::inline v0::detail
