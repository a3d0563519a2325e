// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "temporary_folder.hpp"

#include <string>

namespace colock::testing {

/// Certificates of an authority of our own: "right" for 127.0.0.1, "named" for named.example. Each is NAME.pem with its
/// key in NAME.key; the authority's is ca.pem, and other.pem another's.
struct certificates
{
    certificates();

    /// Another authority, and all certificates anew, in the same files.
    void renew() const;
    /// A shell's command line, in their folder.
    /// \throws std::runtime_error if it fails
    void run(const std::string& command) const;
    [[nodiscard]] std::string file(const std::string& name) const;

    temporary_folder folder;
};

} // namespace colock::testing
