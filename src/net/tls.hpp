// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/tls.hpp>

#include <boost/asio/ssl/context.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/types.h>
#include <sys/types.h>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::remote {

/// \throws validation_error `invalid_options`
void check_tls_options(const tls_options& options, std::string_view backend);

/// Accepts only a certificate for this name or address, and sends the name to the server (SNI).
void expect_host(::SSL* connection, const std::string& name);

/// Returns why the peer's certificate was rejected, or an empty string if it was accepted.
/// \param name the name for which the certificate had to be valid
[[nodiscard]] std::string certificate_problem(const ::SSL* connection, std::string_view name);

/// The trusted authorities and the client certificate. They are read once and shared by all connections until a file
/// changes.
class tls_material
{
public:
    /// \throws colock::error `invalid_options` for a file that cannot be used.
    explicit tls_material(const tls_options& files);

    /// Returns a context that shares the OpenSSL context of this object, with its authorities and its certificate.
    [[nodiscard]] asio::ssl::context share();
    /// Returns whether a file has changed since it was read. A renewed certificate is usually stored under the name of
    /// the old one.
    [[nodiscard]] bool is_outdated() const;

private:
    /// Identifies a version of a file. All numbers are zero if the status of the file cannot be read.
    struct stamp
    {
        explicit stamp(std::string file_name);
        friend bool operator==(const stamp&, const stamp&) = default;

        std::string name;
        ::ino_t inode = 0;
        std::int64_t size = 0;
        std::int64_t modified = 0;
    };

    [[nodiscard]] static std::vector<stamp> stamps_of(const tls_options& files);

    /// Recorded before the files are read, so that a change during the reading is detected later.
    std::vector<stamp> stamps_;
    asio::ssl::context context_;
};

/// The TLS contexts of new connections. Files that have changed are read again. If the new files cannot be used, the
/// previous contents remain in use and the files are checked again later, because their replacement may be incomplete.
class tls_files
{
public:
    explicit tls_files(tls_options options);

    /// Call this before each TLS connection.
    /// \returns a warning about files that have changed and cannot be used; else empty
    /// \throws colock::error `invalid_options` if the files cannot be used and were never read before
    [[nodiscard]] std::optional<std::string> refresh();
    /// Returns a context for one connection. Before the files have been read, the context contains no authorities and
    /// no certificate.
    [[nodiscard]] asio::ssl::context context();

private:
    const tls_options options_;
    std::optional<tls_material> material_;
};

} // namespace colock::inline v0::remote
