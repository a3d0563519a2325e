// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "cut_fixture.hpp"

#include <functional>
#include <vector>

namespace colock::testing {

/// An operation, and the request of the operation that is lost.
struct cut_operation
{
    enum class kind : unsigned char
    {
        /// The operation ends with `outcome_unknown`, whether the server has executed the request or not.
        one_request,
        /// As `one_request`, for a request that runs a script.
        script,
        /// The connection is lost before the request is sent, and the request is sent on the next connection.
        connecting,
    };

    const char* name;
    kind cut;
    const char* word;
    /// Prepares the server, calls the second argument, and starts the operation.
    std::function<running<ending>(fixture&, const fixture::action&)> start;
    /// Tells whether the server has executed the operation.
    std::function<bool(fixture&)> carried_out{};
    /// Result of the operation if nothing is lost.
    bool success = true;
    redis::layout layout = redis::layout::standard;
};

[[nodiscard]] std::vector<cut_operation> cut_operations();

} // namespace colock::testing
