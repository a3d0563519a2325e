// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/answer.hpp"
#include "mongo/fiber_host.hpp"
#include "mongo/scram.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

struct _mongoc_client_t;

namespace colock::mongo::detail {

/// As whom.
struct credentials
{
    std::string user{};
    std::string password{};
    /// The database that knows the user.
    std::string source = "admin";
    /// SCRAM-SHA-1 or SCRAM-SHA-256; empty: the best that the server has for the user.
    std::string mechanism{};
};

/// Logs connections in. The driver would do so itself, but hashes the password anew for every connection, and lets
/// nothing else run meanwhile. Here it is done once for all connections, in small parts.
///
/// A password for SCRAM-SHA-256 must be of printable ASCII, or the login is refused: others would have to be prepared
/// as RFC 4013 has it, and may be two for a server that are the same to a user.
///
/// Thread safety: none; belongs to the strand.
class login
{
public:
    explicit login(credentials who);
    ~login();
    login(const login&) = delete;
    login& operator=(const login&) = delete;

    /// On a fiber: logs the driver's one connection in.
    /// \returns why it could not be done, else nothing. `refused` with `authentication_failed`: one side does not
    ///          accept the other. It always spoils, and what it was to be done for was not sent. The password is in no
    ///          message.
    [[nodiscard]] std::optional<answer> perform(::_mongoc_client_t& driver, fiber_host& on) noexcept;

    /// How many times the password was hashed: whenever the server has asked for it in another way.
    [[nodiscard]] std::size_t hashed() const noexcept { return hashed_; }

private:
    class attempt;
    struct hashing;

    [[nodiscard]] std::shared_ptr<hashing> begin_hashing(const salting& how);

    const credentials who_;
    /// What the server has for the user, if it was asked.
    std::string negotiated_;
    std::shared_ptr<hashing> last_;
    std::size_t hashed_ = 0;
};

} // namespace colock::mongo::detail
