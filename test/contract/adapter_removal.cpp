// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Breaks of held locks, and purges of expired ones.
#include "contract.hpp"

#include <set>
#include <string>

namespace colock::contract {

COLOCK_CONTRACT_CASE(adapter, break_removes_the_holder_of_a_key, &capabilities::list)
{
    const auto broken = env.exclusive("k"), bystander = env.exclusive("kk"), next = env.exclusive("k");
    const auto fence = env.grant(broken);
    env.grant(bystander);
    const auto removed = env.break_key("k");
    BOOST_REQUIRE(removed.size() == 1U);
    BOOST_TEST(removed[0].key == "k");
    BOOST_TEST((removed[0].fence == fence || (removed[0].fence == 0 && !env.capabilities().lists_fence)));
    env.check_not_held(broken);
    BOOST_TEST(env.extend(broken, env.long_ttl).status == extend_status::not_held);
    BOOST_TEST(env.release(broken).status == release_status::not_held);
    env.check_held(bystander);
    env.grant(next);
    env.release_held(next);
    env.release_held(bystander);
    BOOST_TEST(env.break_key("k").empty());
}

COLOCK_CONTRACT_CASE(adapter, break_removes_every_shared_holder, &capabilities::list, &capabilities::shared)
{
    const auto first = env.shared("k"), second = env.shared("k"), writer = env.exclusive("k");
    env.grant(first);
    env.grant(second);
    BOOST_TEST(env.break_key("k").size() == 2U);
    env.check_not_held(first);
    env.check_not_held(second);
    env.grant(writer);
    env.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, purge_keeps_live_locks, &capabilities::list, &capabilities::expires)
{
    const auto live = env.exclusive("live"), expired = env.exclusive("expired", env.short_ttl());
    env.grant(live);
    env.grant(expired);
    BOOST_TEST(env.purge().empty());
    env.check_held(expired);
    env.pass_time(env.short_ttl());
    // A backend whose keys expire by themselves has nothing to return.
    for (const auto& removed : env.purge())
        BOOST_TEST(removed.key == "expired");
    env.check_held(live);
    BOOST_TEST(env.purge().empty());
    env.release_held(live);
}

COLOCK_CONTRACT_CASE(adapter, without_ttl_nothing_is_purged, &capabilities::no_ttl, &capabilities::list)
{
    const auto claim = env.exclusive("k", 0ms);
    env.grant(claim);
    env.pass_time(env.short_ttl());
    BOOST_TEST(env.purge().empty());
    env.check_held(claim);
    const auto status = env.inspect("k");
    BOOST_REQUIRE(status.size() == 1U);
    BOOST_TEST(!status[0].remaining);
    CHECK_KEYS(env.list({.remaining_at_least = 24h}), {"k"});
    BOOST_TEST(env.list({.remaining_below = std::chrono::milliseconds::max()}).empty());
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, purge_reports_each_expired_lock_once, &capabilities::list, &capabilities::expires)
{
    const bool shared = env.capabilities().shared;
    const auto live = env.exclusive("live");
    env.grant(live);
    for (int i = 0; i < 300; ++i) {
        const auto key = "k" + std::to_string(i);
        env.grant(shared ? env.shared(key, 0, env.short_ttl()) : env.exclusive(key, env.short_ttl()));
    }
    env.pass_time(env.short_ttl());
    const auto first = env.purge(100);
    BOOST_TEST(first.size() <= 100U);
    const auto rest = env.purge();
    std::set<std::string> listed;
    listed.merge(keys_of(first));
    listed.merge(keys_of(rest));
    BOOST_TEST(listed.size() == first.size() + rest.size());
    BOOST_TEST(listed.size() <= 300U);
    BOOST_TEST(!listed.contains("live"));
    BOOST_TEST(env.purge().empty());
    env.check_held(live);
    env.release_held(live);
}

COLOCK_CONTRACT_CASE(
    adapter, purge_spares_the_live_holders_of_a_key, &capabilities::list, &capabilities::shared, &capabilities::expires)
{
    const auto expired = env.shared("k", 0, env.short_ttl()), live = env.shared("k");
    env.grant(expired);
    env.grant(live);
    env.pass_time(env.short_ttl());
    BOOST_TEST(env.purge().size() <= 1U);
    env.check_held(live);
    env.check_refused(env.one_attempt("k"));
    env.release_held(live);
}

} // namespace colock::contract
