// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>

namespace colock::testing {
BOOST_AUTO_TEST_SUITE(redis_faults)

BOOST_AUTO_TEST_CASE(operations_wait_for_a_restarted_server)
{
    redis_server server;
    client_side client({.url = server.url(), .operation_timeout = 25s});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    server.kill();
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    auto after = start(client.io, client.test_driver.backend().create(sent_now(driver::exclusive("other"))));
    client.run_for(300ms);
    BOOST_TEST(!after.done());
    server.start();
    BOOST_TEST((after.get(client.io).status == create_status::granted));
    BOOST_TEST(client.events->readies == 1);
    BOOST_TEST(client.events->suspensions == 1);
    BOOST_TEST(client.events->reconnections == 1);
    BOOST_TEST(client.test_driver.backend().reconnects() == 1u);
    // Without an append-only file the lock is lost, and this is reported.
    client.test_driver.check_not_held(claim);
    BOOST_TEST((client.test_driver.extend(claim, 10s).status == extend_status::not_held));
    BOOST_TEST(client.events->warned_of("append-only"));
}

const std::string busy_reply = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL\r\n";

BOOST_AUTO_TEST_CASE(temporarily_refused_database_is_selected_later)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    const std::string hello = "%2\r\n$2\r\nid\r\n:7\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";
    between.answer_at("SELECT", hello + busy_reply + busy_reply);
    client_side client({.url = between.url() + "/1"});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(between.cuts() == 1);
}

enum class asked : unsigned char
{
    one,
    both,
};

/// The proxy holds back a create of one or of both claims, and closes the connection. The request is still on its way.
struct delayed_create
{
    explicit delayed_create(redis::options settings, const char* password = nullptr, asked which = asked::one)
        : between(server.port())
    {
        if (password)
            server({"ACL", "SETUSER", "app", "on", (std::string(">") + password), "~*", "&*", "+@all", "-client"});
        settings.url = between.url();
        settings.health_interval = 400ms;
        client.emplace(std::move(settings));
        const auto warm = driver::exclusive("warm");
        // After this the server knows the script.
        if (which == asked::both)
            client->test_driver.grant_all({warm});
        else
            client->test_driver.grant(warm);
        client->test_driver.release_held(warm);
        between.hold();
        const auto outcome = which == asked::one ? client->test_driver.create(claim)
                                                 : client->test_driver.create_all({claim, other}).refusal;
        BOOST_TEST(code_of(outcome) == errc::outcome_unknown);
        claim->mark_in_doubt();
        if (which == asked::both)
            other->mark_in_doubt();
    }

    redis_server server;
    redis_faulty_proxy between;
    std::optional<client_side> client;
    plain_claim_ptr claim = driver::exclusive("k", 60s);
    plain_claim_ptr other = driver::exclusive("l", 60s);
};

BOOST_AUTO_TEST_CASE(temporarily_refused_kill_is_retried)
{
    for (const auto how : {redis::layout::standard, redis::layout::plain}) {
        BOOST_TEST_CONTEXT("layout " << static_cast<int>(how))
        {
            delayed_create f({.layout = how});
            // The request contains CLIENT KILL twice, and the rights check in two forms. In the standard layout it also
            // contains the fence anchor.
            std::string busy;
            for (int i = how == redis::layout::standard ? 5 : 4; i > 0; --i)
                busy += busy_reply;
            f.between.answer_at("KILL", busy);
            BOOST_TEST((f.client->test_driver.abandon(f.claim).status == release_status::not_held));
            BOOST_TEST(f.between.cuts() == 1);
            BOOST_TEST(!f.claim->in_doubt());
            BOOST_TEST(!f.client->events->warned_of("CLIENT KILL"));
        }
    }
}

BOOST_AUTO_TEST_CASE(without_the_right_to_kill_nothing_is_promised)
{
    delayed_create f({.user = "app", .password = "pw"}, "pw");
    const auto outcome = f.client->test_driver.abandon(f.claim);
    BOOST_TEST_REQUIRE((outcome.status == release_status::failed));
    BOOST_TEST(outcome.error->code == errc::outcome_unknown);
    BOOST_TEST(f.claim->in_doubt());
    BOOST_TEST(f.client->events->warned_of("CLIENT KILL"));
    // The request still arrives, so nothing could be promised.
    f.between.deliver();
    BOOST_TEST(f.server({"GET", "{colock}:k"}).starts_with(f.claim->token().hex()));
}

BOOST_AUTO_TEST_CASE(unanswered_create_of_several_promises_nothing_without_the_right_to_kill)
{
    delayed_create f({.user = "app", .password = "pw"}, "pw", asked::both);
    for (const auto& each : {f.claim, f.other}) {
        BOOST_TEST((f.client->test_driver.abandon(each).status == release_status::failed));
        BOOST_TEST(each->in_doubt());
    }
    f.between.deliver();
    for (const auto& each : {f.claim, f.other})
        BOOST_TEST(f.server({"GET", "{colock}:" + each->key()}).starts_with(each->token().hex()));
}

BOOST_AUTO_TEST_CASE(a_paused_server_makes_operations_wait)
{
    redis_server server;
    client_side client({.url = server.url()});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    BOOST_TEST(server({"CLIENT", "PAUSE", "300", "WRITE"}) == "OK");
    client.test_driver.release_held(claim);
}

BOOST_AUTO_TEST_CASE(refused_subscription_leads_to_polling)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "resetchannels", "+@all"});
    client_side client({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 30ms});
    const auto holder = driver::exclusive("k");
    client.test_driver.grant(holder);
    const auto waiter = driver::exclusive("k");
    auto waiting = client.test_driver.start_acquire(waiter);
    run_until(client.io, [&] { return client.events->warned_of("poll"); });
    // Replies still belong to their own commands.
    for (int i = 0; i < 20; ++i) {
        client.test_driver.check_held(holder);
        client.test_driver.check_refused(driver::exclusive("k"));
    }
    BOOST_TEST(!waiting.done());
    client.test_driver.release_held(holder);
    BOOST_TEST(waiting.get(client.io) > 0u);
    BOOST_TEST(std::ranges::count_if(client.events->warnings,
                   [](const auto& each) { return each.find("poll") != std::string::npos; }) == 1);
}

BOOST_AUTO_TEST_CASE(without_memory_locks_are_still_extended_and_released)
{
    redis_server server;
    client_side client({.url = server.url()});
    const auto exclusive = driver::exclusive("k", 10s);
    const auto reader = driver::shared("s", 0, 10s);
    client.test_driver.grant(exclusive);
    client.test_driver.grant(reader);
    BOOST_TEST(server({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
    for (const auto& claim : {driver::exclusive("free"), driver::shared("free"), driver::exclusive("k"),
             driver::exclusive("s"), driver::shared("s")})
    {
        const auto outcome = client.test_driver.create(claim);
        BOOST_TEST(code_of(outcome) == errc::misconfigured_backend);
        BOOST_TEST(outcome.error->detail.find("OOM") != std::string::npos);
    }
    BOOST_TEST(server({"EXISTS", "{colock}:free"}) == "0");
    // There is still a single reader, and no intent of a writer.
    BOOST_TEST(server({"ZRANGE", "{colock}:s", "0", "-1"}).starts_with("s" + reader->token().hex()));
    BOOST_TEST((client.test_driver.extend(exclusive, 60s).status == extend_status::extended));
    BOOST_TEST((client.test_driver.extend(reader, 60s).status == extend_status::extended));
    BOOST_TEST(std::stoll(server({"PTTL", "{colock}:s"})) > 50'000);
    client.test_driver.check_held(exclusive);
    client.test_driver.check_held(reader);
    const auto next = driver::exclusive("k");
    const auto handed = client.test_driver.hand_over(exclusive, next);
    BOOST_TEST((handed.released.status == release_status::released));
    BOOST_TEST((handed.created.status == create_status::failed));
    BOOST_TEST(server({"EXISTS", "{colock}:k"}) == "0");
    client.test_driver.release_held(reader);
    BOOST_TEST(server({"EXISTS", "{colock}:s"}) == "0");
}

BOOST_AUTO_TEST_CASE(missing_min_replicas_is_warned_of)
{
    redis_server master;
    redis_server replica;
    replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    for (const bool bounded : {true, false}) {
        master({"CONFIG", "SET", "min-replicas-to-write", bounded ? "1" : "0"});
        client_side client({.url = master.url()});
        while (bounded && master({"INFO", "replication"}).find("min_slaves_good_slaves:1") == std::string::npos)
            client.run_for(10ms);
        client.test_driver.grant(driver::one_attempt(bounded ? "bounded" : "alone"));
        BOOST_TEST(client.events->warned_of("replicas"));
        BOOST_TEST(client.events->warned_of("min-replicas-to-write") == !bounded);
    }
}

BOOST_AUTO_TEST_CASE(killed_and_silent_servers_are_distinguished)
{
    for (const bool is_killed : {true, false}) {
        redis_server server;
        client_side client({.url = server.url(), .operation_timeout = 4s, .health_interval = 500ms});
        client.test_driver.grant(driver::exclusive("warm"));
        server.pause();
        auto asked = start(client.io, client.test_driver.backend().create(sent_now(driver::exclusive("k"))));
        client.run_for(50ms);
        if (is_killed)
            server.kill();
        const auto outcome = asked.get(client.io);
        const error_code expected = is_killed ? asio::error::connection_reset : asio::error::timed_out;
        BOOST_TEST(code_of(outcome) == errc::outcome_unknown);
        BOOST_TEST(outcome.error->cause == expected);
        BOOST_TEST(client.events->loss == expected);
        const auto later = client.test_driver.create(driver::exclusive("later"));
        BOOST_TEST(code_of(later) == errc::unavailable);
        BOOST_TEST(later.error->detail.find(is_killed ? "refused" : "the server does not answer") != std::string::npos,
            later.error->detail);
    }
}

BOOST_AUTO_TEST_CASE(a_node_of_a_cluster_that_has_all_slots_is_used_with_a_warning)
{
    redis_server server({"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())});
    BOOST_TEST(server({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}) == "OK");
    for (const auto layout : {redis::layout::standard, redis::layout::plain}) {
        client_side client({.url = server.url(), .prefix = "{app}:", .layout = layout});
        const auto claim = driver::exclusive("k");
        client.test_driver.grant(claim);
        BOOST_TEST((client.test_driver.extend(claim, 10s).status == extend_status::extended));
        client.test_driver.release_held(claim);
        client.test_driver.check_not_held(claim);
        BOOST_TEST(client.events->warned_of("Cluster"));
    }
    client_side client({.url = server.url()});
    for (const auto& each : {driver::shared("k"), driver::shared("k")})
        client.test_driver.grant(each);
    client.test_driver.grant_all({driver::exclusive("a"), driver::exclusive("b")});
    BOOST_TEST(client.test_driver.list().size() == 4u);
    for (const auto layout : {redis::layout::standard, redis::layout::plain}) {
        for (const std::string prefix : {"spread:", "{}:", "}a{:"}) {
            client_side spread({.url = server.url(), .prefix = prefix, .layout = layout});
            const auto outcome = spread.test_driver.create(driver::exclusive("k"));
            BOOST_TEST(code_of(outcome) == errc::misconfigured_backend);
            BOOST_TEST(outcome.error->detail.find("braces") != std::string::npos, outcome.error->detail);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_evicting_server_is_warned_of)
{
    redis_server server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
    client_side client({.url = server.url()});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(client.events->warned_of("allkeys-lru"));
}

BOOST_AUTO_TEST_CASE(a_unix_socket_will_do)
{
    const temporary_folder folder;
    redis_server server({"--unixsocket", folder / "s"});
    client_side client({.url = "redis+unix://" + (folder / "s").string()});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(server({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(a_context_may_die_with_everything_under_way)
{
    redis_server server;
    for (const bool stopped : {false, true}) {
        for (int steps = 0; steps < 60; ++steps) {
            auto io = std::make_unique<asio::io_context>();
            const auto backend = redis::make_adapter(io->get_executor(), {.url = server.url()});
            const driver test_driver(*io, backend);
            const auto holder = driver::exclusive((stopped ? "s" : "r") + std::to_string(steps));
            if (stopped) {
                test_driver.grant(holder);
                server.pause();
            }
            auto first = test_driver.start_acquire(driver::exclusive(holder->key()));
            auto second = test_driver.start_acquire(driver::exclusive(holder->key()));
            auto listed = start(*io, backend->listing({}));
            io->restart();
            for (int i = 0; i < steps && io->run_one_for(2ms) > 0; ++i) {
            }
            io.reset();
            if (stopped)
                server.resume();
            // After the context is gone, the adapter does nothing. In particular it does not crash.
            backend->start_release(
                holder, release_guarantee::released, [](release_outcome) { BOOST_ERROR("there is nobody to answer"); });
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
