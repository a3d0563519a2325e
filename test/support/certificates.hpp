// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "temporary_folder.hpp"

#include <string>

namespace colock::testing {

/// Test certificates, issued by a private certificate authority: "right" for 127.0.0.1, "named" for named.example. The
/// certificate NAME is in NAME.pem and its key in NAME.key. ca.pem is the certificate of the authority; other.pem is
/// the certificate of an unrelated authority.
struct certificates
{
    certificates();

    /// Replaces the authorities and all certificates by new ones in the same files.
    void renew() const;
    /// Runs a shell command in the folder of the certificates.
    /// \throws std::runtime_error if the command fails
    void run(const std::string& command) const;
    [[nodiscard]] std::string file(const std::string& name) const;

    temporary_folder folder;
};

} // namespace colock::testing
