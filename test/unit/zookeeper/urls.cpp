// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/url.hpp"

#include <colock/error.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>

using namespace colock::zookeeper::detail;
using namespace std::chrono_literals;
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
             "zookeeper://:@h", "zookeeper://:secret@h", "zookeeper://me:@h", "zookeeper://m%3Ae:secret@h",
             "zookeeper://h/secret//b", "zookeeper://h//", "zookeeper://h/./secret", "zookeeper://h/secret/..",
             "zookeeper://h/zookeeper", "zookeeper://h/zookeeper/secret", "zookeeper://h/secret%01",
             "zookeeper://h/secret%7F", "zookeeper://h/secret%C3%BC", "zookeeper://h?chroot=secret",
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

BOOST_AUTO_TEST_CASE(options_of_the_url_reach_their_members)
{
    const auto all = take_url_options({.url = "zookeeper://me:p@h/locks?layout=curator_read_write&session_timeout=30s"
                                              "&smallest_session_timeout=4s&server_tick=500ms&operation_timeout=6s"
                                              "&connect_timeout=500ms&idle_timeout=1m"});
    BOOST_TEST(all.url == "zookeeper://me:p@h/locks");
    BOOST_TEST((all.layout == colock::zookeeper::layout::curator_read_write));
    BOOST_TEST((all.session_timeout == 30s));
    BOOST_TEST((all.smallest_session_timeout == 4s));
    BOOST_TEST((all.server_tick == 500ms));
    BOOST_TEST((all.operation_timeout == 6s));
    BOOST_TEST((all.connect_timeout == 500ms));
    BOOST_TEST((all.idle_timeout == 1min));
    using colock::zookeeper::layout;
    for (const auto& [name, value] :
        {std::pair("standard", layout::standard), {"curator_mutex", layout::curator_mutex}})
        BOOST_TEST((take_url_options({.url = std::string("zookeeper://h?layout=") + name}).layout == value), name);
}

BOOST_AUTO_TEST_CASE(is_path_accepts_only_paths)
{
    for (const auto* const path : {"/a", "/a/b", "/a/.clock", "/...", "/a b"})
        BOOST_TEST(is_path(path), path);
    for (const auto* const text : {"", "a", "/", "//", "/a/", "/a//b", "/.", "/a/..", "/a/./b", "/a\x7f", "/a\n"})
        BOOST_TEST(!is_path(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
