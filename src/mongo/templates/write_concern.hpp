// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>

namespace colock::inline v0::mongo::detail::templates {

/// The write concern of all writes: a grant on a primary alone would be lost if another member takes over. `?m` is the
/// operation timeout in milliseconds.
inline const std::string write_concern = R"("writeConcern":{"w":"majority","wtimeout":"?m"})";

} // namespace colock::inline v0::mongo::detail::templates
