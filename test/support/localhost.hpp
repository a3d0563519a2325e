// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

namespace colock::testing {

/// Precondition of a test: the name "localhost" can be resolved. A minimal system may have no hosts file.
inline boost::test_tools::assertion_result knows_localhost(boost::unit_test::test_unit_id)
{
    namespace asio = boost::asio;
    asio::io_context io;
    boost::system::error_code failed;
    asio::ip::tcp::resolver(io).resolve(asio::ip::tcp::v4(), "localhost", "", failed);
    boost::test_tools::assertion_result known(!failed);
    known.message() << "this machine does not know the name localhost";
    return known;
}

} // namespace colock::testing
