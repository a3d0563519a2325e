// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

/// Marks the classes and functions that a shared library exports. All others are hidden: they can only be called from
/// within their own library.
#define COLOCK_EXPORT [[gnu::visibility("default")]]
