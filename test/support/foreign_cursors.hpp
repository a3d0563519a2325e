// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "util/cursor.hpp"

#include <colock/spi/adapter.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

/// Checks that the adapter refuses each of these cursors inside the call, before anything is sent.
inline void check_cursors_are_refused(adapter& backend, const std::vector<std::string>& cursors)
{
    for (const auto& cursor : cursors) {
        for (const auto& which : {filter{}, filter{.key = "k"}}) {
            failure_ptr why;
            colock::detail::start_listing(backend, {.filter = which, .cursor = cursor},
                [&](list_outcome outcome) { why = std::move(outcome.error); });
            BOOST_TEST_REQUIRE(why, cursor);
            BOOST_TEST((why->code == errc::invalid_options));
        }
    }
}

} // namespace colock::testing
