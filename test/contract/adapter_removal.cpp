// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Breaks of held locks, and purges of expired ones.
#include "contract.hpp"

#include <set>
#include <string>

namespace colock::contract {

COLOCK_CONTRACT_CASE(adapter, break_removes_the_holder_of_a_key, &capabilities::list)
{
    const auto broken = on.exclusive("k"), bystander = on.exclusive("kk"), next = on.exclusive("k");
    const auto fence = on.grant(broken);
    on.grant(bystander);
    const auto removed = on.break_key("k");
    BOOST_REQUIRE(removed.size() == 1U);
    BOOST_TEST(removed[0].key == "k");
    BOOST_TEST((removed[0].fence == fence || removed[0].fence == 0));
    on.check_not_held(broken);
    BOOST_TEST(on.extend(broken, on.long_ttl).status == extend_status::not_held);
    BOOST_TEST(on.release(broken).status == release_status::not_held);
    on.check_held(bystander);
    on.grant(next);
    on.release_held(next);
    on.release_held(bystander);
    BOOST_TEST(on.break_key("k").empty());
}

COLOCK_CONTRACT_CASE(adapter, break_removes_every_shared_holder, &capabilities::list, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.exclusive("k");
    on.grant(first);
    on.grant(second);
    BOOST_TEST(on.break_key("k").size() == 2U);
    on.check_not_held(first);
    on.check_not_held(second);
    on.grant(writer);
    on.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, purge_keeps_live_locks, &capabilities::list, &capabilities::expires)
{
    const auto live = on.exclusive("live"), expired = on.exclusive("expired", on.short_ttl());
    on.grant(live);
    on.grant(expired);
    BOOST_TEST(on.purge().empty());
    on.check_held(expired);
    on.pass_time(on.short_ttl());
    // A backend whose keys expire by themselves has nothing to return.
    for (const auto& removed : on.purge())
        BOOST_TEST(removed.key == "expired");
    on.check_held(live);
    BOOST_TEST(on.purge().empty());
    on.release_held(live);
}

COLOCK_CONTRACT_CASE(adapter, without_ttl_nothing_is_purged, &capabilities::no_ttl, &capabilities::list)
{
    const auto claim = on.exclusive("k", 0ms);
    on.grant(claim);
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.purge().empty());
    on.check_held(claim);
    const auto status = on.inspect("k");
    BOOST_REQUIRE(status.size() == 1U);
    BOOST_TEST(!status[0].remaining);
    CHECK_KEYS(on.list({.remaining_at_least = 24h}), {"k"});
    BOOST_TEST(on.list({.remaining_below = std::chrono::milliseconds::max()}).empty());
    on.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, purge_removes_at_most_its_limit, &capabilities::list, &capabilities::expires)
{
    for (int i = 0; i < 5; ++i)
        on.grant(on.exclusive("k" + std::to_string(i), on.short_ttl()));
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.purge(2).size() <= 2U);
    BOOST_TEST(on.purge().size() <= 5U);
    BOOST_TEST(on.purge().empty());
}

COLOCK_CONTRACT_CASE(adapter, purge_reports_each_expired_lock_once, &capabilities::list, &capabilities::expires)
{
    const bool shared = on.able().shared;
    const auto live = on.exclusive("live");
    on.grant(live);
    for (int i = 0; i < 300; ++i) {
        const auto key = "k" + std::to_string(i);
        on.grant(shared ? on.shared(key, 0, on.short_ttl()) : on.exclusive(key, on.short_ttl()));
    }
    on.pass_time(on.short_ttl());
    const auto first = on.purge(100);
    BOOST_TEST(first.size() <= 100U);
    const auto rest = on.purge();
    std::set<std::string> listed;
    listed.merge(keys_of(first));
    listed.merge(keys_of(rest));
    BOOST_TEST(listed.size() == first.size() + rest.size());
    BOOST_TEST(listed.size() <= 300U);
    BOOST_TEST(!listed.contains("live"));
    BOOST_TEST(on.purge().empty());
    on.check_held(live);
    on.release_held(live);
}

COLOCK_CONTRACT_CASE(
    adapter, purge_spares_the_live_holders_of_a_key, &capabilities::list, &capabilities::shared, &capabilities::expires)
{
    const auto expired = on.shared("k", 0, on.short_ttl()), live = on.shared("k");
    on.grant(expired);
    on.grant(live);
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.purge().size() <= 1U);
    on.check_held(live);
    on.refuse(on.one_attempt("k"));
    on.release_held(live);
}

} // namespace colock::contract
