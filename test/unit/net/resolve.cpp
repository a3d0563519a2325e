// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/resolve.hpp"
#include "support/no_free_descriptors.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <optional>
#include <string_view>

using namespace colock;
using namespace colock::testing;
using asio::ip::tcp;

namespace {

boost::system::error_code resolve(asio::io_context& io, std::string_view host)
{
    asio::ip::basic_resolver<tcp, remote::socket_executor> resolver{remote::socket_executor(io.get_executor())};
    std::optional<boost::system::error_code> result;
    resolver.async_resolve(
        host, "1", [&](const boost::system::error_code& failed, const remote::addresses&) { result = failed; });
    run_until(io, [&] { return result.has_value(); });
    return *result;
}

} // namespace

BOOST_AUTO_TEST_SUITE(net_resolve)

BOOST_AUTO_TEST_CASE(address_for_which_no_socket_can_be_opened_is_reported_with_the_reason,
    *boost::unit_test::precondition(may_lack_descriptors))
{
    const boost::system::error_code none_free(EMFILE, boost::system::system_category());
    asio::io_context io;
    // The first socket of a context opens the descriptors of the context.
    const tcp::socket first(io);
    for (const std::string_view host : {"127.0.0.1", "localhost"}) {
        BOOST_TEST_CONTEXT(host)
        {
            {
                const no_free_descriptors only_now;
                BOOST_TEST(resolve(io, host) == none_free);
            }
            BOOST_TEST(!resolve(io, host));
        }
    }
}

BOOST_AUTO_TEST_CASE(unknown_name_is_reported_as_such)
{
    asio::io_context io;
    BOOST_TEST((resolve(io, "no-such-host.invalid").category() == asio::error::get_netdb_category()));
}

BOOST_AUTO_TEST_SUITE_END()
