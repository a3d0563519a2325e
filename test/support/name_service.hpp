// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The name service as it is seen by programs that link colock_test_name_service.
#pragma once

#include <boost/asio/io_context.hpp>

#include <atomic>

namespace colock::testing {

/// Address of "moving.test". Default: 127.0.0.1.
extern std::atomic<const char*> moving_name_address;

/// While an object exists, the name service does not answer for "late.test". Afterwards it knows no address.
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
