// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;
using strings = std::vector<std::string>;

inline void expect(const strings& seen, const strings& expected)
{
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
}

/// Returns the keys of the calls of these operations, in the order in which the calls were started.
inline strings keys_of(const instrumented_adapter& script, std::initializer_list<operation> which)
{
    strings keys;
    for (const auto& call : script.calls()) {
        if (std::ranges::find(which, call.what) != which.end())
            keys.push_back(call.key);
    }
    return keys;
}

inline void slow_down(instrumented_adapter& script, lease_clock::duration each_way)
{
    for (const auto what :
        {operation::create, operation::release, operation::abandon, operation::hand_over, operation::create_all})
        script.always(what, step::pass().delay(each_way));
}

/// Makes the script answer inside its calls after a delay, during which no other handler runs.
inline void block_loop_per_call(instrumented_adapter& script, asio::io_context& io, lease_clock::duration each)
{
    const auto poke = std::make_shared<lease_timer>(io);
    for (const auto what :
        {operation::create, operation::release, operation::abandon, operation::hand_over, operation::create_all})
    {
        script.always(what, step::pass().after([poke, each] {
            virtual_clock::skip(each);
            // As virtual_clock::advance does, so that the timers of others do not lag behind.
            poke->expires_at(lease_clock::time_point::min());
            poke->async_wait([](const error_code&) {});
        }));
    }
}

/// For two locks with a TTL of one second: both are granted in time, but the first lease ends before the group is
/// complete.
inline void end_first_lease(instrumented_adapter& script)
{
    script.next(operation::create, step::pass().after([] { virtual_clock::skip(700ms); }));
    script.next(operation::create, step::pass().after([] { virtual_clock::skip(500ms); }));
}

} // namespace colock::testing
