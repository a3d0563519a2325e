// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/locker.hpp>

#include <optional>

namespace colock::testing {
namespace {

/// A server whose user may or may not kill connections, behind a proxy that can hold data back.
struct late_link
{
    explicit late_link(bool may_kill, locker_options options = {}) : between(server.port())
    {
        server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", may_kill ? "+client" : "-client"});
        backend = redis::make_adapter(io.get_executor(),
            {.url = between.url(), .user = "app", .password = "pw", .operation_timeout = 20s, .health_interval = 5s});
        options.retry = retry_policy::fixed(20ms);
        options.operation_timeout = 20s;
        env.emplace(backend, std::move(options));
    }
    ~late_link() { static_cast<void>(run_coro(io, env->shutdown(5s))); }

    /// Loses an extension: the proxy holds the request back and closes the connection.
    void lose_extend(lock& held, std::chrono::milliseconds ttl)
    {
        between.hold();
        auto extending = start(io, held.extend(ttl));
        run_until(io, [&] { return between.keeps(); });
        between.hang_up();
        try {
            extending.get(io);
            BOOST_ERROR("extended, although nothing could pass");
        } catch (const extend_error& failed) {
            BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
        }
    }
    [[nodiscard]] static std::chrono::milliseconds left(const lock& held)
    {
        return std::chrono::duration_cast<std::chrono::milliseconds>(held.expires_at() - lease_clock::now());
    }
    [[nodiscard]] std::chrono::milliseconds stored(const std::string& key)
    {
        return std::chrono::milliseconds(std::stoll(server({"PTTL", "{colock}:" + key})));
    }

    redis_server server;
    redis_faulty_proxy between;
    asio::io_context io;
    std::shared_ptr<adapter> backend;
    std::optional<locker> env;
};

/// How the second holder gets the lock after a break was sent.
enum class later : unsigned char
{
    granted,
    handed_over,
    adopted,
};

lock pass_on(asio::io_context& io, const locker& others, lock first, later how)
{
    if (how == later::adopted)
        return run_coro(io, others.adopt(run_coro(io, first.detach()), {.ttl = 60s}));
    if (how == later::granted) {
        run_coro(io, first.release(on_failure::raise));
        return run_coro(io, others.acquire("k", {.ttl = 60s}));
    }
    auto waiting = start(io, others.acquire("k", {.ttl = 60s}));
    run_until(io, [&] { return others.stats().waiting == 1; });
    run_coro(io, first.release(on_failure::raise));
    return waiting.get(io);
}

/// Breaks "k" through the proxy, which holds either the listing or the removal back until the test delivers it.
void lose_break(late_link& f, bool after_look)
{
    // After this the server knows the scripts by their digests.
    f.server({"SET", "{colock}:other", stored_holder('a'), "PX", "60000"});
    BOOST_TEST(run_coro(f.io, f.env->break_lock("other")).size() == 1U);
    const auto cuts = f.between.cuts();
    if (after_look)
        f.between.cut_at("EVALSHA", loss::delayed_reply);
    else
        f.between.hold();
    auto breaking = start(f.io, f.env->break_lock("k"));
    if (after_look) {
        run_until(f.io, [&] { return f.between.cuts() > cuts; });
        f.between.hold();
        f.between.deliver_replies();
    }
    run_until(f.io, [&] { return f.between.keeps(); });
    f.between.hang_up();
    try {
        breaking.get(f.io);
        BOOST_ERROR("answered, although nothing could pass");
    } catch (const error& failed) {
        // A lost listing has changed nothing.
        BOOST_TEST((failed.code() == (after_look ? errc::outcome_unknown : errc::unavailable)), failed.what());
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_late_requests)

BOOST_AUTO_TEST_CASE(late_break_spares_later_holders)
{
    for (const bool after_look : {false, true}) {
        for (const auto how : {later::granted, later::handed_over, later::adopted}) {
            BOOST_TEST_CONTEXT("after its look: " << after_look << ", case " << static_cast<int>(how))
            {
                late_link f(false);
                const locker others(redis::make_adapter(f.io.get_executor(), {.url = f.server.url()}));
                auto first = run_coro(f.io, others.acquire("k", {.ttl = 60s}));
                lose_break(f, after_look);
                auto second = pass_on(f.io, others, std::move(first), how);
                f.between.deliver();
                BOOST_TEST(run_coro(f.io, second.is_locked()));
                BOOST_TEST(!run_coro(f.io, others.try_acquire("k")));
                run_coro(f.io, second.release(on_failure::raise));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(late_break_removes_only_listed_readers)
{
    for (const int before : {1, 2}) {
        late_link f(false);
        client_side others({.url = f.server.url()});
        const std::vector<plain_claim_ptr> seen{driver::shared("k", 0, 60s), driver::shared("k", 0, 0s)};
        const auto newer = driver::shared("k", 0, 90s);
        for (int i = 0; i < before; ++i)
            others.test_driver.grant(seen[static_cast<std::size_t>(i)]);
        lose_break(f, true);
        others.test_driver.grant(newer);
        f.between.deliver();
        for (const auto& each : seen)
            others.test_driver.check_not_held(each);
        others.test_driver.check_held(newer);
        BOOST_TEST((f.stored("k") > 60s && f.stored("k") <= 90s));
        others.test_driver.release_held(newer);
    }
}

BOOST_AUTO_TEST_CASE(break_removes_more_readers_than_one_script_can)
{
    redis_server server;
    client_side client({.url = server.url()});
    std::vector<plain_claim_ptr> readers;
    for (int i = 0; i < 1500; ++i) {
        readers.push_back(driver::shared("k", 0, 60s));
        client.test_driver.grant(readers.back());
    }
    BOOST_TEST(client.test_driver.break_key("k").size() == readers.size());
    BOOST_TEST(server({"EXISTS", "{colock}:k"}) == "0");
    BOOST_TEST(client.test_driver.break_key("k").empty());
}

BOOST_AUTO_TEST_CASE(lease_ends_before_late_shorter_extension_can_expire)
{
    late_link f(false);
    auto held = run_coro(f.io, f.env->acquire("k", {.ttl = 60s}));
    f.lose_extend(held, 20s);
    run_coro(f.io, held.extend(60s));
    BOOST_TEST((f.left(held) <= 20s));
    f.between.deliver();
    BOOST_TEST((f.stored("k") <= 20s));
    BOOST_TEST((f.left(held) <= f.stored("k")));
}

BOOST_AUTO_TEST_CASE(where_the_old_connection_can_be_killed_the_lease_is_as_long_as_was_asked)
{
    late_link f(true);
    auto held = run_coro(f.io, f.env->acquire("k", {.ttl = 60s}));
    f.lose_extend(held, 20s);
    run_coro(f.io, held.extend(60s));
    BOOST_TEST((f.left(held) > 20s));
    f.between.deliver();
    BOOST_TEST((f.stored("k") > 20s));
}

BOOST_AUTO_TEST_CASE(an_answer_on_the_same_connection_ends_the_doubt)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    client_side client({.url = between.url(), .operation_timeout = 3s, .health_interval = 1min});
    const auto claim = driver::exclusive("k", 60s);
    client.test_driver.grant(claim);
    between.cut_at("EVALSHA", loss::delayed_reply);
    // This extension fails because its reply comes after the operation timeout. The connection stays open.
    BOOST_TEST((client.test_driver.extend(claim, 20s).status == extend_status::failed));
    claim->lower_late_ttl(20s);
    between.deliver_replies();
    while (client.test_driver.extend(claim, 60s).status == extend_status::failed)
        continue;
    BOOST_TEST((claim->late_ttl() == std::chrono::milliseconds::max()));
    BOOST_TEST(client.events->suspensions == 0);
}

BOOST_AUTO_TEST_CASE(claim_with_late_release_is_not_granted_again)
{
    late_link f(false, {.ttl = 60s, .minimum_validity = 58'500ms});
    // After this the server knows the script by its digest.
    run_coro(f.io, run_coro(f.io, f.env->acquire("k", {.ttl = 60s})).release(on_failure::raise));
    f.between.cut_at("SET", loss::delayed_reply);
    auto acquiring = start(f.io, f.env->acquire("k", {.ttl = 60s}));
    run_until(f.io, [&] { return f.between.cuts() == 1 && f.stored("k") > 0ms && f.stored("k") < 58s; });
    f.between.hold();
    f.between.deliver_replies();
    // The grant was late, so it is released.
    run_until(f.io, [&] { return f.between.keeps(); });
    f.between.hang_up();
    auto held = acquiring.get(f.io);
    f.between.deliver();
    BOOST_TEST(run_coro(f.io, held.is_locked()));
    run_coro(f.io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(claim_with_unproven_release_is_not_granted_again)
{
    late_link f(false);
    run_coro(f.io, run_coro(f.io, f.env->acquire("k")).release(on_failure::raise));
    // The acquire itself releases a lock for which it gets no fence.
    f.server({"SET", "{colock}#fence", "none"});
    f.between.cut_at("INCRBY", loss::delayed_reply);
    auto acquiring = start(f.io, f.env->acquire("k", {.ttl = 60s}));
    run_until(f.io, [&] { return f.between.cuts() == 1; });
    f.between.hold();
    f.between.deliver_replies();
    run_until(f.io, [&] { return f.between.keeps(); });
    const auto first = f.server({"GET", "{colock}:k"}).substr(0, 32);
    f.server({"SET", "{colock}#fence", "1"});
    f.between.hang_up();
    auto held = acquiring.get(f.io);
    BOOST_TEST(held.token().hex() != first);
    f.between.deliver();
    BOOST_TEST(run_coro(f.io, held.is_locked()));
    run_coro(f.io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
