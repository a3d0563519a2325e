// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::mongo::detail {

/// Before anything else of the driver's. Once is enough. What it would write to stderr is dropped: its errors say the
/// same.
///
/// Thread safety: safe.
void start_driver();

/// Initializes what OpenSSL needs for an authentication. It would do so itself at the first one, which runs on a fiber
/// with a small stack, and would block the event loop meanwhile.
///
/// Thread safety: safe.
void prepare_cryptography();

} // namespace colock::mongo::detail
