// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace colock::testing {

/// Records all grants of one key.
class grant_checker
{
public:
    /// Checks that no earlier holder of a conflicting lock still considers its lock held, and that the fence has grown.
    void on_grant(const lock& now)
    {
        const bool alone = now.mode() == lock_mode::exclusive;
        BOOST_TEST(now.fence() > (alone ? fence_ : exclusive_fence_));
        fence_ = std::max(fence_, now.fence());
        if (alone)
            exclusive_fence_ = now.fence();
        BOOST_TEST(std::ranges::none_of(inside_,
            [&](const lock* each) { return (alone || each->mode() == lock_mode::exclusive) && each->held(); }));
        inside_.push_back(&now);
        ++grants;
    }
    void on_release(const lock& by) { std::erase(inside_, &by); }

    int grants = 0;

private:
    std::uint64_t fence_ = 0;
    std::uint64_t exclusive_fence_ = 0;
    std::vector<const lock*> inside_;
};

} // namespace colock::testing
