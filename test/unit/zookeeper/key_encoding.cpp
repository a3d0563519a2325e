// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/layout/key_encoding.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace colock::zookeeper::detail;

namespace {

bool is_one_component(std::string_view text)
{
    return !text.empty() &&
           text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_%~") ==
               std::string_view::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_key_encoding)

BOOST_AUTO_TEST_CASE(key_of_any_bytes_survives_encoding_and_decoding)
{
    std::vector<std::string> keys{"a", ".", "..", "/", "a/b", "~", "~YQ", "%", "%41", "cart:17",
        std::string("\x01\x7f"), "\xff\xfe", "zookeeper", std::string(512, '/'), std::string(512, 'a'),
        std::string(511, '\xff'), "Zürich"};
    for (int byte = 1; byte < 256; ++byte) {
        keys.emplace_back(1, static_cast<char>(byte));
        keys.push_back("k" + keys.back() + keys.back());
    }
    std::set<std::string> names;
    for (const auto& key : keys) {
        const auto name = encode_key(key);
        BOOST_TEST(is_one_component(name), name);
        BOOST_TEST(name.size() <= 684u);
        BOOST_TEST((decode_key(name) == key), name);
        names.insert(name);
    }
    BOOST_TEST(names.size() == std::set<std::string>(keys.begin(), keys.end()).size());
}

BOOST_AUTO_TEST_CASE(plain_keys_are_readable_in_names)
{
    BOOST_TEST(encode_key("order-17_b") == "order-17_b");
    BOOST_TEST(encode_key("carts/order:17") == "carts%2Forder%3A17");
    BOOST_TEST(encode_key("\xff\xff\xff") == "~____");
    BOOST_TEST(encode_key("\xff\xff\xff\xff") == "~_____w");
}

BOOST_AUTO_TEST_CASE(invalid_component_is_not_decoded)
{
    for (const auto* const text :
        {"", "~", ".clock", "%", "%4", "%4x", "%2f", "%41", "a b", "~YQ", "~____=", "~__!_", "~_____"})
        BOOST_TEST(!decode_key(text), text);
}

BOOST_AUTO_TEST_CASE(the_bucket_of_a_key_is_the_low_byte_of_its_fnv_1a)
{
    // The 64-bit hashes given by the authors of the algorithm: cbf29ce484222325, af63dc4c8601ec8c, 85944171f73967e8.
    BOOST_TEST(bucket_of("") == "25");
    BOOST_TEST(bucket_of("a") == "8c");
    BOOST_TEST(bucket_of("foobar") == "e8");
}

BOOST_AUTO_TEST_SUITE_END()
