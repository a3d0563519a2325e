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

namespace colock {
namespace asio = boost::asio;
}

namespace colock::remote {

/// \throws validation_error `invalid_options`
void check_tls_options(const tls_options& given, std::string_view backend);

/// Lets only a certificate pass that carries that name, or that address, and tells the server which name is meant.
void expect_host(::SSL* connection, const std::string& name);

/// Why the peer's certificate was refused, in words; empty: it was not.
/// \param name that it had to be for
[[nodiscard]] std::string certificate_problem(const ::SSL* connection, std::string_view name);

/// The trusted authorities and our certificate, read once and shared by all connections until a file changes.
///
/// Thread safety: none.
class tls_material
{
public:
    /// \throws colock::error `invalid_options` for a file that cannot be used.
    explicit tls_material(const tls_options& files);

    /// A context of its own over the same material.
    [[nodiscard]] asio::ssl::context share();
    /// Some file is not the one that was read: certificates are replaced in place, and authorities with them.
    [[nodiscard]] bool is_outdated() const;

private:
    /// What tells a file from the one that was there before; all zero: it cannot be read.
    struct stamp
    {
        explicit stamp(std::string name);
        friend bool operator==(const stamp&, const stamp&) = default;

        std::string name;
        ::ino_t node = 0;
        std::int64_t size = 0;
        std::int64_t changed = 0;
    };

    [[nodiscard]] static std::vector<stamp> stamps_of(const tls_options& files);

    /// Taken before the files are read: what changes in between is noticed then.
    std::vector<stamp> read_;
    asio::ssl::context context_;
};

/// What connections are made with. Files that were replaced are read again; if they cannot be used then, they may be in
/// the middle of it: those from before go on being used, and they are looked at again.
///
/// Thread safety: none.
class tls_files
{
public:
    explicit tls_files(tls_options given);

    /// Before a connection is made over TLS.
    /// \returns what is to be told of files that have changed and cannot be used; else nothing
    /// \throws colock::error `invalid_options` if there are none from before
    [[nodiscard]] std::optional<std::string> refresh();
    /// For one connection; without what any file holds, until they were read.
    [[nodiscard]] asio::ssl::context context();

private:
    const tls_options given_;
    std::optional<tls_material> read_;
};

} // namespace colock::remote
