// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::inline v0::mongo::detail {

/// Initializes the driver. Must be called before any other use of the driver; further calls do nothing. The driver's
/// log output to stderr is suppressed, because the errors of its functions contain the same information.
///
/// Thread safety: safe.
void start_driver();

/// Initializes the parts of OpenSSL that an authentication needs. Otherwise OpenSSL would initialize them during the
/// first authentication, which runs on a fiber with a small stack and would block the event loop.
///
/// Thread safety: safe.
void prepare_cryptography();

} // namespace colock::inline v0::mongo::detail
