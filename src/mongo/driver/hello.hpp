// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"
#include "mongo/driver/server_identity.hpp"
#include "net/url.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace colock::inline v0::mongo::detail {

/// Description of a server whose version is not supported.
inline constexpr auto too_old = "is older than MongoDB 5.0";

/// Reply of a server to the command `hello`.
struct hello
{
    /// Returns the command.
    [[nodiscard]] static document make_command();
    /// A field that is missing, or has an unexpected type or an impossible value, keeps its default.
    explicit hello(const document& reply);
    hello() = default;

    /// The server accepts writes.
    bool writable = false;
    /// The server is a router, which forwards commands to the members of several replica sets.
    bool is_router = false;
    /// Description of a server that does not accept writes.
    std::string state = "not a member that accepts writes, or not yet";
    server_identity identity{};
    /// The members that the server knows. The primary comes first, if the server knows it. Invalid names are left out.
    std::vector<remote::endpoint> members{};
    /// The server's clock, in milliseconds.
    std::int64_t local_time = 0;
};

} // namespace colock::inline v0::mongo::detail
