// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/url.hpp"

#include <colock/error.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace colock::zookeeper::detail;
using colock::validation_error;

BOOST_AUTO_TEST_SUITE(zookeeper_urls)

BOOST_AUTO_TEST_CASE(url_with_servers_user_and_chroot_is_parsed)
{
    const auto all = parse_url("zookeeper://me:s%40cret@h1:2182,h2,[::1]:2183/locks/of%20ours");
    BOOST_TEST((all == location{.servers = {{"h1", "2182"}, {"h2", "2181"}, {"::1", "2183"}},
                           .user = "me",
                           .password = "s@cret",
                           .chroot = "/locks/of ours"}));
}

BOOST_AUTO_TEST_CASE(minimal_url_names_a_server)
{
    BOOST_TEST((parse_url("zookeeper://h") == location{.servers = {{"h", "2181"}}}));
    BOOST_TEST(parse_url("zookeeper://h/").chroot == "/colock");
    BOOST_TEST(parse_url("zookeeper://h/locks/").chroot == "/locks");
}

BOOST_AUTO_TEST_CASE(a_chroot_behind_each_host_is_refused_with_the_right_form)
{
    for (const auto* const text : {"zookeeper://h1:2181/locks,h2:2181/locks", "zookeeper://h1/locks,h2/locks,h3/locks",
             "zookeeper://h1/locks,h2"})
    {
        try {
            static_cast<void>(parse_url(text));
            BOOST_ERROR("taken: " << text);
        } catch (const validation_error& refused) {
            BOOST_TEST(std::string(refused.what()).find("zookeeper://host:port,host:port/path") != std::string::npos,
                refused.what());
        }
    }
    BOOST_TEST(parse_url("zookeeper://h/locks%2Ch2").chroot == "/locks,h2");
    BOOST_TEST(parse_url("ZooKeeper://h/Locks").chroot == "/Locks");
}

BOOST_AUTO_TEST_CASE(invalid_url_is_refused_without_repeating_it)
{
    for (const std::string text : {"h:2181", "redis://h", "zookeeper://", "zookeeper://h,", "zookeeper://h:0",
             "zookeeper://secret@h", "zookeeper://:secret@h", "zookeeper://me:@h", "zookeeper://m%3Ae:secret@h",
             "zookeeper://h/secret//b", "zookeeper://h//", "zookeeper://h/./secret", "zookeeper://h/secret/..",
             "zookeeper://h/zookeeper", "zookeeper://h/zookeeper/secret", "zookeeper://h/secret%01",
             "zookeeper://h/secret%7F", "zookeeper://h/secret%C3%BC", "zookeeper://h?secret=1",
             "zookeeper://h/a#secret", "zookeeper://me:12/secret@h", "zookeeper://h/secret%2Fb",
             "zookeeper://h1,me:secret@h2", "zookeeper://h1;secret"})
    {
        try {
            static_cast<void>(parse_url(text));
            BOOST_ERROR("taken: " << text);
        } catch (const validation_error& refused) {
            BOOST_TEST((refused.code() == colock::errc::invalid_options));
            BOOST_TEST(std::string(refused.what()).find("secret") == std::string::npos, refused.what());
        }
    }
    BOOST_CHECK_THROW(static_cast<void>(parse_url("zookeeper://h/" + std::string(300, 'a'))), validation_error);
}

BOOST_AUTO_TEST_CASE(is_path_accepts_only_paths)
{
    for (const auto* const path : {"/a", "/a/b", "/a/.clock", "/...", "/a b"})
        BOOST_TEST(is_path(path), path);
    for (const auto* const text : {"", "a", "/", "//", "/a/", "/a//b", "/.", "/a/..", "/a/./b", "/a\x7f", "/a\n"})
        BOOST_TEST(!is_path(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
