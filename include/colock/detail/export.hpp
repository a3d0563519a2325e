// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

/// Marks the classes and functions that a shared library exports. All others are hidden: they can only be called from
/// within their own library.
#define COLOCK_EXPORT [[gnu::visibility("default")]]

/// Marks a function that exists only to refuse a mistake. The compiler's error names the line of the call and has the
/// text. Compilers do not agree on the name of the attribute in [[]].
#define COLOCK_REFUSED(text) __attribute__((unavailable(text)))
