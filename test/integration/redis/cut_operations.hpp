// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "cut_scene.hpp"

#include <functional>
#include <vector>

namespace colock::testing {

/// An operation, and the request of it that is cut.
struct cut_operation
{
    enum class kind : unsigned char
    {
        /// It ends in `outcome_unknown`, whatever became of it.
        one_request,
        /// The same, for a request that is a script's.
        script,
        /// The connection is lost before it is sent, and it goes out on the next one.
        connecting,
    };

    const char* name;
    kind cut;
    const char* word;
    /// Prepares, calls its second argument, and starts.
    std::function<running<ending>(scene&, const scene::action&)> start;
    /// Whether the server has carried it out.
    std::function<bool(scene&)> carried_out{};
    /// That of an operation that nothing cuts.
    bool success = true;
    redis::layout layout = redis::layout::standard;
};

[[nodiscard]] std::vector<cut_operation> cut_operations();

} // namespace colock::testing
