// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/paths.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock;
using namespace colock::zookeeper::detail;

BOOST_AUTO_TEST_SUITE(zookeeper_paths)

BOOST_AUTO_TEST_CASE(a_key_has_a_folder_of_its_own_below_the_chroot)
{
    settings config({.url = "zookeeper://h/locks"});
    BOOST_TEST(key_folder(config, "a/b") == "/locks/" + bucket_of("a/b") + '/' + encode_key("a/b"));
    config.layout = layout::curator_mutex;
    BOOST_TEST(key_folder(config, "k") == "/locks/k");
}

BOOST_AUTO_TEST_SUITE_END()
