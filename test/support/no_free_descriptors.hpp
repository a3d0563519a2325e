// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <unistd.h>

namespace colock::testing {

/// While an object exists, this process cannot open a descriptor.
class no_free_descriptors
{
public:
    no_free_descriptors() : last_(::dup(STDERR_FILENO))
    {
        BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        auto limit = before_;
        // `last_` was the lowest free number.
        limit.rlim_cur = static_cast<rlim_t>(last_) + 1;
        BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    no_free_descriptors(const no_free_descriptors&) = delete;
    no_free_descriptors& operator=(const no_free_descriptors&) = delete;
    ~no_free_descriptors()
    {
        ::setrlimit(RLIMIT_NOFILE, &before_);
        ::close(last_);
    }

private:
    const int last_;
    rlimit before_{};
};

} // namespace colock::testing
