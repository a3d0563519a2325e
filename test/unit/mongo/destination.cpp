// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/destination.hpp"

#include "mongo/driver/driver.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

#include <mongoc/mongoc.h>

using namespace colock::mongo::detail;

namespace {

std::string named_by_driver(const destination& to)
{
    start_driver();
    const auto made = driver_uri(to);
    const auto* const hosts = mongoc_uri_get_hosts(made.get());
    BOOST_TEST(!hosts->next);
    BOOST_TEST(mongoc_uri_get_option_as_bool(made.get(), MONGOC_URI_DIRECTCONNECTION, false));
    BOOST_TEST(!mongoc_uri_get_option_as_bool(made.get(), MONGOC_URI_RETRYWRITES, true));
    return hosts->host_and_port;
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_destinations)

BOOST_AUTO_TEST_CASE(the_driver_names_a_destination_as_we_do)
{
    for (const auto& to : {destination{.host = "127.0.0.1", .port = "27017"},
             destination{.host = "a-name.example", .port = "1"}, destination{.host = "::1", .port = "65535"}})
        BOOST_TEST(named_by_driver(to) == to.name());
    BOOST_TEST((destination{.host = "::1", .port = "7"}.name() == "[::1]:7"));
}

BOOST_AUTO_TEST_CASE(host_or_port_unsuitable_for_a_url_is_replaced_by_a_placeholder)
{
    for (const auto& host :
        {"", "a,b", "a/b.sock", "a@b", "a?ssl=true", "fe80::1%lo", "a b", "%zz", "caf\xc3\xa9", "a]"})
        BOOST_TEST(named_by_driver({.host = host, .port = "1"}) == "unnamed:27017");
    BOOST_TEST(named_by_driver({.host = std::string(300, 'a'), .port = "1"}) == "unnamed:27017");
    for (const auto& port : {"", "0", "65536", "x", "1/?tls=true", "1,b"})
        BOOST_TEST(named_by_driver({.host = "a", .port = port}) == "unnamed:27017");
}

BOOST_AUTO_TEST_CASE(connect_timeout_is_passed_to_the_driver)
{
    start_driver();
    for (const auto limit : {10, 2'000, 3'600'000}) {
        const auto made = driver_uri({.host = "h", .port = "1", .connect_timeout = std::chrono::milliseconds(limit)});
        BOOST_TEST(mongoc_uri_get_option_as_int32(made.get(), MONGOC_URI_CONNECTTIMEOUTMS, 0) == limit);
    }
}

BOOST_AUTO_TEST_CASE(credentials_are_set_outside_of_the_uri_text)
{
    start_driver();
    const credentials who{.user = "me@%:/", .password = "s%40cret?&\xc3\xa9", .source = "users", .mechanism = "PLAIN"};
    const auto made = driver_uri({.host = "h", .port = "1", .login = std::make_shared<const credentials>(who)});
    BOOST_TEST(mongoc_uri_get_username(made.get()) == who.user);
    BOOST_TEST(mongoc_uri_get_password(made.get()) == who.password);
    BOOST_TEST(mongoc_uri_get_auth_source(made.get()) == who.source);
    BOOST_TEST(mongoc_uri_get_auth_mechanism(made.get()) == who.mechanism);
    BOOST_TEST(std::string(mongoc_uri_get_string(made.get())).find("cret") == std::string::npos);
    const auto without = driver_uri({.host = "h", .port = "1"});
    BOOST_TEST(!mongoc_uri_get_username(without.get()));
    BOOST_TEST(!mongoc_uri_get_auth_mechanism(without.get()));
}

BOOST_AUTO_TEST_SUITE_END()
