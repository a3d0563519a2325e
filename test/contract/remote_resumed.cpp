// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace colock::contract {

// Tests of one server of several that is paused, and continues after the others have given its locks to other callers.
// For a moment, such a server may answer from the past.

namespace {

constexpr auto first_owner = "first";
constexpr auto next_owner = "next";

plain_claim_ptr make_claim(const char* key, const char* owner, bool keeps_place = true)
{
    return new plain_claim({.key = key,
        .ttl = driver::long_ttl,
        .keeps_place = keeps_place,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = owner})});
}

/// Creates the claim until it is granted. \returns the fence
std::uint64_t acquire(replicated_fixture& env, const driver& by, const plain_claim_ptr& claim)
{
    std::uint64_t fence = 0;
    env.until([&] {
        const auto outcome = env.run(by.backend().create(testing::sent_now(claim)));
        if (outcome.status == create_status::failed)
            claim->mark_in_doubt();
        fence = outcome.fence;
        return outcome.status == create_status::granted;
    });
    return fence;
}

/// The locks of one owner. Each key has another task in the tests.
struct locks_of_owner
{
    explicit locks_of_owner(const char* owner)
        : read(make_claim("k", owner)), extended(make_claim("a", owner)), released(make_claim("b", owner))
    {
    }
    [[nodiscard]] std::array<plain_claim_ptr, 3> all() const { return {read, extended, released}; }

    plain_claim_ptr read;
    plain_claim_ptr extended;
    plain_claim_ptr released;
    /// Claims that were created later, and must not be granted.
    std::vector<plain_claim_ptr> created;
};

/// A question, and whether its answer says that the locks still belong to their first owner.
struct question
{
    const char* name;
    running<bool> is_stale;
};

/// Asks each kind of question about locks whose owner has changed. The reads have a connection of their own, because a
/// server may answer them only after earlier writes of the same connection.
std::vector<question> ask(replicated_fixture& env, const driver& writer, locks_of_owner& lost)
{
    auto& reads = env.backend();
    auto& writes = writer.backend();
    const auto is_valid = [](adapter& from, claim_ptr claim) -> asio::awaitable<bool> {
        const auto outcome = co_await from.is_valid(std::move(claim));
        co_return !outcome.error && outcome.valid;
    };
    const auto extend = [](adapter& from, claim_ptr claim) -> asio::awaitable<bool> {
        const auto outcome = co_await from.extend(testing::sent_now(std::move(claim)), driver::long_ttl);
        co_return outcome.status == extend_status::extended;
    };
    const auto release = [](adapter& from, claim_ptr claim) -> asio::awaitable<bool> {
        const auto outcome = co_await from.release(std::move(claim), release_guarantee::released);
        co_return outcome.status == release_status::released;
    };
    const auto create = [](adapter& from, claim_ptr claim) -> asio::awaitable<bool> {
        const auto outcome = co_await from.create(testing::sent_now(claim));
        if (outcome.status == create_status::failed)
            claim->mark_in_doubt();
        co_return outcome.status == create_status::granted;
    };
    const auto inspect = [](adapter& from) -> asio::awaitable<bool> {
        const auto outcome = co_await from.listing({.filter = {.key = "k"}});
        const auto is_lost = [](const lock_status& each) { return each.owner == first_owner; };
        co_return !outcome.error && (outcome.locks.empty() || std::ranges::any_of(outcome.locks, is_lost));
    };
    return {{"is_valid", env.start(is_valid(reads, lost.read))}, {"inspect", env.start(inspect(reads))},
        {"extend", env.start(extend(writes, lost.extended))}, {"release", env.start(release(writes, lost.released))},
        {"create", env.start(create(writes, lost.created.emplace_back(make_claim("k", first_owner, false))))}};
}

void check(replicated_fixture& env, std::vector<question> asked)
{
    for (auto& each : asked)
        BOOST_TEST(!env.get(std::move(each.is_stale)), each.name << " was answered from the past");
}

/// The locks of an owner are broken and granted to another owner while the server of the first owner is paused.
/// \param pause_after_grants how long the server remains paused after that
void check_broken_locks(replicated_fixture& env, lease_clock::duration pause_after_grants)
{
    const auto& direct = env.direct_driver();
    locks_of_owner lost(first_owner);
    const locks_of_owner next(next_owner);
    std::vector<std::uint64_t> fences;
    const auto writer = env.make_linked_driver();
    fences.push_back(acquire(env, env, lost.read));
    for (const auto& each : {lost.extended, lost.released})
        fences.push_back(acquire(env, writer, each));
    env.pause(true);
    for (const auto& each : next.all()) {
        env.until([&] {
            return !env.run(direct.backend().listing(
                                {.action = listing_action::break_key, .filter = {.key = each->key()}}))
                        .locks.empty();
        });
        fences.push_back(acquire(env, direct, each));
    }
    env.pass_time(pause_after_grants);
    // The server receives these requests while it is paused.
    auto early = ask(env, writer, lost);
    env.pass_time({});
    env.pause(false);
    check(env, std::move(early));
    for (const auto end = lease_clock::now() + env.short_ttl(); lease_clock::now() < end;)
        check(env, ask(env, writer, lost));
    for (std::size_t i = 0; env.capabilities().fence && i < next.all().size(); ++i)
        BOOST_TEST(fences[i] < fences[i + next.all().size()]);
    for (const auto& each : next.all()) {
        env.until([&] { return env.run(direct.backend().is_valid(each)).valid; });
        BOOST_TEST(
            (env.run(direct.backend().release(each, release_guarantee::released)).status == release_status::released));
    }
    // The adapters of the first owner can be used again.
    const auto settle = [&](const driver& by, const claim_ptr& claim) {
        env.until([&] {
            return env.run(by.backend().release(claim, release_guarantee::settled)).status != release_status::failed;
        });
    };
    settle(env, lost.read);
    for (const auto& each : {lost.extended, lost.released})
        settle(writer, each);
    for (const auto& each : lost.created)
        settle(writer, each);
    const auto again = make_claim("k", first_owner);
    acquire(env, env, again);
    settle(env, again);
}

} // namespace

// Cases that use the adapter.

COLOCK_REPLICATED_CASE(broken_lock_is_not_confirmed_by_a_resumed_server, &capabilities::list)
{
    check_broken_locks(env, {});
}

/// The adapter may have given up its connection to the server, and try to connect to the same server again.
COLOCK_REPLICATED_CASE(broken_lock_is_not_confirmed_by_a_server_after_a_long_pause, &capabilities::list)
{
    check_broken_locks(env, env.short_ttl());
}

// Cases that use a locker.

COLOCK_REPLICATED_CASE(ended_lock_is_not_confirmed_by_a_resumed_server)
{
    const auto locks = env.make_linked_locker();
    const auto held = env.run(locks.acquire("k", {.ttl = env.short_ttl() * 2}));
    env.pause(true);
    const auto next = make_claim("k", next_owner);
    const auto fence = acquire(env, env.direct_driver(), next);
    BOOST_TEST(!held.held());
    BOOST_TEST((!env.capabilities().fence || held.fence() < fence));
    const auto ask = [&] {
        return env.start([](const lock& of) -> asio::awaitable<bool> {
            try {
                co_return co_await of.is_locked();
            } catch (const error&) {
                co_return false;
            }
        }(held));
    };
    const auto acquire_again = [&] {
        return env.start([](locker by) -> asio::awaitable<bool> {
            try {
                co_return (co_await by.try_acquire("k")).has_value();
            } catch (const error&) {
                co_return false;
            }
        }(locks));
    };
    auto early = ask();
    auto wanted = acquire_again();
    env.pass_time({});
    env.pause(false);
    BOOST_TEST(!env.get(std::move(early)));
    BOOST_TEST(!env.get(std::move(wanted)));
    for (const auto end = lease_clock::now() + env.short_ttl(); lease_clock::now() < end;) {
        BOOST_TEST(!env.get(ask()));
        BOOST_TEST(!env.get(acquire_again()));
        BOOST_TEST(!held.held());
    }
    env.until([&] { return env.run(env.direct_driver().backend().is_valid(next)).valid; });
    BOOST_TEST((env.run(env.direct_driver().backend().release(next, release_guarantee::released)).status ==
                release_status::released));
    env.run(env.run(locks.acquire("k")).release());
    env.until([&] { return locks.stats().settling == 0; });
}

} // namespace colock::contract
