// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>

namespace colock {

/// How a backend's server is known to be the right one, and what it knows us by. The server's certificate and host name
/// are always verified. Files that have been replaced are read again by the next connection that is made; if they
/// cannot be used then, those from before go on being used.
struct tls_options
{
    /// A file of trusted certificate authorities (PEM). Default: the system's.
    std::string ca_file{};
    /// A client certificate (PEM, chain allowed) and its key, which must not be encrypted; both or neither.
    std::string certificate_file{};
    std::string key_file{};
    /// The name that the server's certificate must carry. Default: the host that is connected to.
    std::string server_name{};

    friend bool operator==(const tls_options&, const tls_options&) = default;
};

} // namespace colock
