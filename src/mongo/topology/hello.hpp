// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"
#include "net/url.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace colock::mongo::detail {

/// What a server says of itself.
struct hello
{
    /// What asks for it.
    [[nodiscard]] static document question();
    /// Whatever is absent, or of another type than it should be, is left at its default.
    explicit hello(const document& reply);
    hello() = default;

    /// It takes writes.
    bool writable = false;
    /// It passes on what is asked to the members of several sets.
    bool is_router = false;
    /// What it is if it does not.
    std::string state = "no member that takes writes, or not yet";
    /// Its replica set; empty: none.
    std::string set{};
    /// The members that it knows, the primary first if it knows that. Names that cannot be read are left out.
    std::vector<remote::endpoint> members{};
    /// In milliseconds.
    std::int64_t local_time = 0;
    int max_wire_version = 0;
};

} // namespace colock::mongo::detail
