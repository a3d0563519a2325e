// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/locker.hpp>

#include <optional>

namespace colock::testing {
namespace {

/// A server that may kill connections, or may not, behind a link whose bytes can be held up.
struct late_link
{
    explicit late_link(bool may_kill, locker_options options = {}) : between(server.port())
    {
        server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", may_kill ? "+client" : "-client"});
        backend = redis::make_adapter(io.get_executor(),
            {.url = between.url(), .user = "app", .password = "pw", .operation_timeout = 20s, .health_interval = 5s});
        options.retry = retry_policy::fixed(20ms);
        options.operation_timeout = 20s;
        on.emplace(backend, std::move(options));
    }
    ~late_link() { static_cast<void>(run_coro(io, on->shutdown(5s))); }

    /// The request is kept by the link, and its connection ends.
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
    redis_relay between;
    asio::io_context io;
    std::shared_ptr<adapter> backend;
    std::optional<locker> on;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_late_requests)

BOOST_AUTO_TEST_CASE(no_lease_outlasts_a_shorter_extension_that_may_still_arrive)
{
    late_link f(false);
    auto held = run_coro(f.io, f.on->acquire("k", {.ttl = 60s}));
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
    auto held = run_coro(f.io, f.on->acquire("k", {.ttl = 60s}));
    f.lose_extend(held, 20s);
    run_coro(f.io, held.extend(60s));
    BOOST_TEST((f.left(held) > 20s));
    f.between.deliver();
    BOOST_TEST((f.stored("k") > 20s));
}

BOOST_AUTO_TEST_CASE(an_answer_on_the_same_connection_ends_the_doubt)
{
    redis_server server;
    redis_relay between(server.port());
    client_side some({.url = between.url(), .operation_timeout = 300ms, .health_interval = 10s});
    const auto claim = driver::exclusive("k", 60s);
    some.speak.grant(claim);
    between.cut_at("EVALSHA", loss::time);
    // An extension that is told of in the operation timeout is not; the connection stays.
    BOOST_TEST((some.speak.extend(claim, 20s).status == extend_status::failed));
    claim->may_arrive_late(20s);
    between.deliver_replies();
    while (some.speak.extend(claim, 60s).status == extend_status::failed)
        continue;
    BOOST_TEST((claim->late_ttl() == std::chrono::milliseconds::max()));
    BOOST_TEST(some.told->suspensions == 0);
}

BOOST_AUTO_TEST_CASE(a_claim_whose_release_may_still_arrive_is_not_granted_again)
{
    late_link f(false, {.ttl = 60s, .minimum_validity = 58'500ms});
    // The server knows the script by its digest from now on.
    run_coro(f.io, run_coro(f.io, f.on->acquire("k", {.ttl = 60s})).release(on_failure::raise));
    f.between.cut_at("SET", loss::time);
    auto acquiring = start(f.io, f.on->acquire("k", {.ttl = 60s}));
    run_until(f.io, [&] { return f.between.cuts() == 1 && f.stored("k") > 0ms && f.stored("k") < 58s; });
    f.between.hold();
    f.between.deliver_replies();
    // The grant was late, and is given back.
    run_until(f.io, [&] { return f.between.keeps(); });
    f.between.hang_up();
    auto held = acquiring.get(f.io);
    f.between.deliver();
    BOOST_TEST(run_coro(f.io, held.is_locked()));
    run_coro(f.io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(what_an_adapter_could_not_give_back_for_certain_is_not_granted_again)
{
    late_link f(false);
    run_coro(f.io, run_coro(f.io, f.on->acquire("k")).release(on_failure::raise));
    // A lock without a fence is given back by the acquire itself.
    f.server({"SET", "{colock}#fence", "none"});
    f.between.cut_at("INCRBY", loss::time);
    auto acquiring = start(f.io, f.on->acquire("k", {.ttl = 60s}));
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
