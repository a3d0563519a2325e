// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cut_operations.hpp"

#include <string>
#include <utility>

namespace colock::testing {

std::vector<cut_operation> cut_operations()
{
    using kind = cut_operation::kind;
    using action = fixture::action;
    const auto locked = [](fixture& env) { return env.has(lock_name); };
    const auto free = [](fixture& env) { return !env.has(lock_name); };
    const auto extended = [](fixture& env) { return std::stoll(env.server({"PTTL", lock_name})) > 100'000; };
    const auto two = [](fixture& env) { return env.server({"ZCARD", lock_name}) == "2"; };
    const auto swept = [](fixture& env) { return !env.has("{colock}:old"); };

    const auto create = [](plain_claim_ptr (*make)()) {
        return [make](fixture& env, const action& start_cut) {
            const auto claim = env.ours(make());
            start_cut();
            return env.create(claim);
        };
    };
    const auto exclusive = [] { return driver::exclusive("k", 60s); };
    const auto without_ttl = [] { return driver::exclusive("k", 0s); };
    const auto shared = [] { return driver::shared("k", 0, 60s); };
    const auto semaphore = [] { return driver::shared("k", 3, 60s); };
    const auto second_attempt = [](fixture& env, const action& start_cut) {
        const auto holder = env.their_grant(driver::exclusive("k"));
        const auto claim = env.ours(driver::exclusive("k", 60s));
        env.test_driver().check_refused(claim);
        env.direct->release_held(holder);
        start_cut();
        return env.create(claim);
    };
    const auto busy = [](plain_claim_ptr (*theirs)()) {
        return [theirs](fixture& env, const action& start_cut) {
            env.their_grant(theirs());
            const auto claim = env.ours(driver::exclusive("k", 60s));
            start_cut();
            return env.create(claim);
        };
    };
    const auto next_to = [](plain_claim_ptr (*make)()) {
        return [make](fixture& env, const action& start_cut) {
            env.their_grant(make());
            const auto claim = env.ours(make());
            start_cut();
            return env.create(claim);
        };
    };
    const auto held = [](plain_claim_ptr (*make)(), running<ending> (*act)(fixture&, const plain_claim_ptr&)) {
        return [make, act](fixture& env, const action& start_cut) {
            const auto claim = env.our_grant(make());
            start_cut();
            return act(env, claim);
        };
    };
    const auto release = [](fixture& env, const plain_claim_ptr& claim) {
        return env.begin(env.backend().release(claim, release_guarantee::released));
    };
    const auto extend = [](fixture& env, const plain_claim_ptr& claim) {
        claim->set_operation_start(lease_clock::now());
        return env.begin(env.backend().extend(claim, 300s));
    };
    const auto valid = [](fixture& env, const plain_claim_ptr& claim) {
        return env.begin(env.backend().is_valid(claim));
    };
    const auto of_all = [](asio::awaitable<list_outcome> (*walk)(adapter&)) {
        return [walk](fixture& env, const action& start_cut) {
            env.their_grant(driver::exclusive("k"));
            env.server({"ZADD", "{colock}:old", "1", stored_holder('a', true)});
            env.repair = [&env] { env.server({"DEL", "{colock}:old"}); };
            start_cut();
            return env.begin(walk(env.backend()));
        };
    };
    const auto list = [](adapter& backend) { return backend.listing({}); };
    const auto purge = [](adapter& backend) { return backend.listing({.action = listing_action::purge}); };
    const auto inspect = [](adapter& backend) { return backend.listing({.filter = {.key = "k"}}); };

    return {
        {"create", kind::one_request, "SET", create(exclusive), locked},
        {"create, cut at its second command", kind::one_request, "INCRBY", create(exclusive), locked},
        {"create without ttl", kind::one_request, "SET", create(without_ttl), locked},
        {"create with an anchor", kind::one_request, "EVALSHA",
            [](fixture& env, const action& start_cut) {
                env.client->run_for(1100ms);
                const auto claim = env.ours(driver::exclusive("k", 60s));
                start_cut();
                return env.create(claim);
            },
            locked},
        {"a second attempt", kind::script, "EVALSHA", second_attempt, locked},
        {"busy", kind::script, "EVALSHA", busy(exclusive), {}, false},
        {"a writer's intent", kind::script, "EVALSHA", busy(shared), [](fixture& env) { return env.has_intent(); },
            false},
        {"create shared", kind::script, "EVALSHA", create(shared), locked},
        {"create shared next to another", kind::script, "EVALSHA", next_to(shared), two},
        {"create of a semaphore next to another", kind::script, "EVALSHA", next_to(semaphore), two},
        {"a reader meets an intent", kind::script, "EVALSHA",
            [](fixture& env, const action& start_cut) {
                const auto claim = env.ours(driver::shared("k", 0, 60s));
                env.server({"ZADD", lock_name, "-9e15", 'w' + std::string(32, 'a')});
                env.repair = [&env] { env.server({"ZREM", lock_name, 'w' + std::string(32, 'a')}); };
                start_cut();
                return env.create(claim);
            },
            {}, false},
        {"lifting the fence", kind::one_request, "EVAL",
            [](fixture& env, const action& start_cut) {
                const auto claim = env.ours(driver::exclusive("k", 60s));
                env.server({"DEL", fence_name});
                start_cut();
                return env.create(claim);
            },
            [](fixture& env) { return std::stoll(env.server({"GET", fence_name})) > 1'600'000'000'000'000; }},
        {"hand over", kind::script, "EVALSHA",
            [](fixture& env, const action& start_cut) {
                const auto holder = env.our_grant(driver::exclusive("k", 60s));
                const auto next = env.ours(driver::exclusive("k", 60s));
                start_cut();
                return env.hand_over(holder, next);
            },
            [](fixture& env) { return env.server({"GET", lock_name}).starts_with(env.own.back()->token().hex()); }},
        // Operations that are started in one handler are sent in one batch.
        {"hand over with another", kind::script, "EVALSHA",
            [](fixture& env, const action& start_cut) {
                const auto holder = env.our_grant(driver::exclusive("k", 60s));
                const auto other = env.our_grant(driver::exclusive("other", 60s));
                const auto next = env.ours(driver::exclusive("k", 60s));
                const auto next_other = env.ours(driver::exclusive("other", 60s));
                start_cut();
                auto ours = env.hand_over(holder, next);
                env.batch_mates.push_back(env.hand_over(other, next_other));
                return ours;
            },
            [](fixture& env) { return env.server({"GET", lock_name}).starts_with(env.own[2]->token().hex()); }},
        {"release with another", kind::script, "EVALSHA",
            [release](fixture& env, const action& start_cut) {
                const auto other = env.our_grant(driver::exclusive("other", 60s));
                const auto claim = env.our_grant(driver::exclusive("k", 60s));
                start_cut();
                auto ours = release(env, claim);
                env.batch_mates.push_back(release(env, other));
                return ours;
            },
            [](fixture& env) { return !env.has(lock_name) && !env.has("{colock}:other"); }},
        {"release", kind::script, "EVALSHA", held(exclusive, release), free},
        {"release shared", kind::script, "EVALSHA", held(shared, release), free},
        {"release shared next to another", kind::script, "EVALSHA",
            [release](fixture& env, const action& start_cut) {
                env.their_grant(driver::shared("k", 0, 60s));
                const auto claim = env.our_grant(driver::shared("k", 0, 60s));
                start_cut();
                return release(env, claim);
            },
            [](fixture& env) { return env.server({"ZCARD", lock_name}) == "1"; }},
        {"withdraw", kind::script, "EVALSHA",
            [](fixture& env, const action& start_cut) {
                env.their_grant(driver::shared("k"));
                const auto claim = env.ours(driver::exclusive("k", 60s));
                env.test_driver().check_refused(claim);
                BOOST_TEST(env.has_intent());
                start_cut();
                return env.begin(env.backend().release(claim, release_guarantee::settled));
            },
            [](fixture& env) { return !env.has_intent(); }, false},
        {"extend", kind::script, "EVALSHA", held(exclusive, extend), extended},
        {"extend shared", kind::script, "EVALSHA", held(shared, extend), extended},
        {"valid", kind::script, "EVALSHA", held(exclusive, valid)},
        {"valid shared", kind::script, "EVALSHA", held(shared, valid)},
        {"inspect", kind::script, "EVALSHA", of_all(inspect)},
        {"list, its pages", kind::one_request, "SCAN", of_all(list)},
        {"list, what they hold", kind::script, "EVALSHA", of_all(list)},
        {"purge, its pages", kind::one_request, "SCAN", of_all(purge)},
        {"purge", kind::script, "EVALSHA", of_all(purge), swept},
        {"the greeting", kind::connecting, "HELLO", create(exclusive), locked},
        {"the server's state", kind::connecting, "INFO", create(exclusive), locked},
        {"the first anchor", kind::connecting, "EVAL", create(exclusive), locked},
        {"plain create", kind::one_request, "SET", create(exclusive), [](fixture& env) { return env.has("k"); }, true,
            redis::layout::plain},
        {"plain, a second attempt", kind::script, "EVALSHA", second_attempt, [](fixture& env) { return env.has("k"); },
            true, redis::layout::plain},
        {"plain, busy", kind::script, "EVALSHA", busy(exclusive), {}, false, redis::layout::plain},
        {"plain release", kind::script, "EVALSHA", held(exclusive, release), [](fixture& env) { return !env.has("k"); },
            true, redis::layout::plain},
    };
}

} // namespace colock::testing
