// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <string>

namespace colock::inline v0 {

/// TLS options of the connections to a backend. The server's certificate and host name are always verified. If a file
/// has been replaced, the next connection reads it again. If the new files cannot be used, the previous contents remain
/// in use.
struct tls_options
{
    /// File of trusted certificate authorities (PEM). Default: those of the system.
    std::string ca_file{};
    /// Client certificate (PEM, may be a chain). Set it together with `key_file`.
    std::string certificate_file{};
    /// Key of the client certificate (PEM). It must not be encrypted.
    std::string key_file{};
    /// The name that the server's certificate must contain. Default: the host to which the connection is made.
    std::string server_name{};

    friend bool operator==(const tls_options&, const tls_options&) = default;
};

} // namespace colock::inline v0
