// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/io_context.hpp>

namespace colock::testing {

/// The name service as it is seen by programs that link colock_test_late_names. It looks up "late.test" only when such
/// an object is destroyed, and then knows no address.
class late_names
{
public:
    late_names();
    late_names(const late_names&) = delete;
    late_names& operator=(const late_names&) = delete;
    ~late_names();

    /// Runs handlers until the name has been asked for.
    static void wait_for_question(boost::asio::io_context& io);
};

} // namespace colock::testing
