// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Unusual keys are used literally, not as a pattern, a path or a number.
#include "contract.hpp"

#include <string>
#include <vector>

namespace colock::contract {

COLOCK_CONTRACT_CASE(adapter, unusual_key_is_used_literally)
{
    const std::vector<std::string> odd{"with space", " leading", "trailing ", "a/b/c", "/", "//", ".", "..", "../up",
        "a*", "*", "a?", "[a-z]", "a\\*", "{tag}", "{", "}", "{}", "%s%n", "%00", "$key", "a.b", "a:b", "a|b", "a'b",
        "a\"b", "tab\tnew\nline\r", "\x01\x1f\x7f", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92", "\xff\xfe", "0", "-1",
        "zookeeper", "_id", std::string(512, 'k'), std::string(511, 'k'), std::string(512, '/')};
    std::vector<claim_ptr> claims;
    for (const auto& key : odd) {
        BOOST_TEST_CONTEXT("key " << key)
        {
            claims.push_back(env.exclusive(key));
            env.grant(claims.back());
            env.check_refused(env.one_attempt(key));
        }
    }
    if (env.capabilities().list) {
        for (const auto& key : odd) {
            BOOST_TEST_CONTEXT("key " << key)
            {
                CHECK_KEYS(env.inspect(key), {key});
                CHECK_KEYS(env.list({.key = key}), {key});
                BOOST_TEST(keys_of(env.list({.key_prefix = key})).contains(key));
                for (const auto& found : env.list({.key_prefix = key}))
                    BOOST_TEST(found.key.starts_with(key));
            }
        }
        BOOST_TEST(env.list().size() == odd.size());
    }
    for (const auto& claim : claims)
        env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, any_key_can_be_shared, &capabilities::shared)
{
    for (const auto& key : {"a/b c", "{tag}*", "\xc3\xa4", "%"}) {
        BOOST_TEST_CONTEXT("key " << key)
        {
            const auto first = env.shared(key), second = env.shared(key);
            env.grant(first);
            env.grant(second);
            env.check_refused(env.one_attempt(key));
            env.release_held(first);
            env.release_held(second);
        }
    }
}

} // namespace colock::contract
