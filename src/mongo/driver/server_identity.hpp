// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>

namespace colock::inline v0::mongo::detail {

/// The data by which a server identifies itself. Another server may answer at the same address later.
struct server_identity
{
    /// Id of the server's process; empty: the server sends none.
    std::string process{};
    /// Name of the replica set; empty: none.
    std::string set{};
    /// Name of the server in its replica set.
    std::string name{};
    int max_wire_version = 0;

    bool operator==(const server_identity&) const = default;
    /// Returns whether this may be `other` after a restart.
    [[nodiscard]] bool is_restart_of(const server_identity& other) const
    {
        return set == other.set && name == other.name && max_wire_version == other.max_wire_version;
    }
};

} // namespace colock::inline v0::mongo::detail
