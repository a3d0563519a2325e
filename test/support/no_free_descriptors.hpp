// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <unistd.h>

namespace colock::testing {

/// Precondition of a test: the checks of UndefinedBehaviorSanitizer, which need descriptors, are not built in. The
/// preset asan has both sanitizers.
inline boost::test_tools::assertion_result may_lack_descriptors(boost::unit_test::test_unit_id)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    boost::test_tools::assertion_result no(false);
    no.message() << "UndefinedBehaviorSanitizer needs descriptors";
    return no;
#endif
#endif
    return true;
}

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
