// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_discovery.hpp"

#include "pretender.hpp"
#include "scene.hpp"
#include "server.hpp"
#include "support/relay.hpp"
#include "support/sockets.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using found_kind = finding::kind;

destination local(std::uint16_t port)
{
    return {.host = "127.0.0.1", .port = std::to_string(port)};
}

/// A scout, on a context of its own.
struct search final : context_member
{
    void context_shutdown() noexcept override
    {
        sent.reset();
        strand = {};
    }

    asio::any_io_executor strand;
    std::shared_ptr<scout> sent;
    std::optional<finding> found;
};

struct expedition
{
    expedition()
    {
        of_context->strand = asio::make_strand(*io);
        join_context(io->get_executor(), of_context);
    }

    void send(quest what, lease_clock::duration within = patience)
    {
        of_context->found.reset();
        asio::post(of_context->strand, [on = of_context, what = std::move(what), within]() mutable {
            on->sent = std::make_shared<scout>(on->strand, std::move(what));
            on->sent->start(lease_clock::now() + within, [on](finding found) { on->found = std::move(found); });
            // Never from inside the call.
            BOOST_TEST(!on->found.has_value());
        });
    }
    const finding& wait() const
    {
        run_until(*io, [this] { return of_context->found.has_value(); });
        return *of_context->found;
    }
    const finding& look(quest what, lease_clock::duration within = patience)
    {
        send(std::move(what), within);
        return wait();
    }

    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
    std::shared_ptr<search> of_context = std::make_shared<search>();
};

std::string member_of(const std::string& set, const std::string& more)
{
    return R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "localTime": {"$date": {"$numberLong": "7"}},
        "setName": ")" +
           set + R"(", )" + more + "}";
}

/// A server that says this of itself.
pretender::answers says(std::string reply)
{
    return [reply = std::move(reply)](std::string_view, const document&) { return document::from_json(reply); };
}

std::string secondary_that_names(std::uint16_t primary)
{
    const auto name = "127.0.0.1:" + std::to_string(primary);
    return member_of("secantus",
        R"("isWritablePrimary": false, "secondary": true, "primary": ")" + name + R"(", "hosts": [")" + name + R"("])");
}

/// The name that the test server's replica set has.
std::string set_of_test_server()
{
    expedition some;
    return some.look({.hosts = {local(shared_mongodb())}}).replica_set;
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_scout, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_primary_is_found_with_its_clock)
{
    expedition some;
    const auto before = lease_clock::now();
    const auto& found = some.look({.hosts = {local(shared_mongodb())}});
    BOOST_TEST((found.what == found_kind::primary), found.why);
    BOOST_TEST(found.at.name() == local(shared_mongodb()).name());
    BOOST_TEST((found.asked >= before && found.asked <= lease_clock::now()));
    const auto ours =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
    // The server is on this machine.
    BOOST_TEST(std::abs(found.server_time - ours.count()) < 60'000);
    BOOST_TEST(!found.replica_set.empty());
    BOOST_TEST(found.max_wire_version > 0);
}

BOOST_AUTO_TEST_CASE(the_replica_set_must_be_the_one_that_is_named)
{
    const auto set = set_of_test_server();
    expedition some;
    BOOST_TEST((some.look({.hosts = {local(shared_mongodb())}, .replica_set = set}).what == found_kind::primary));
    const auto& other = some.look({.hosts = {local(shared_mongodb())}, .replica_set = "another"});
    BOOST_TEST((other.what == found_kind::misconfigured));
    BOOST_TEST(other.why.find(set) != std::string::npos, other.why);
    // It may be only this one.
    pretender electing(*some.io, says(member_of("another", R"("isWritablePrimary": false, "secondary": true)")));
    const auto& both =
        some.look({.hosts = {local(shared_mongodb()), local(electing.port())}, .replica_set = "another"});
    BOOST_TEST((both.what == found_kind::nobody));
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_hosts_that_are_mute_dead_or_unknown)
{
    relay mute(shared_mongodb());
    mute.silence(true);
    expedition some;
    const auto begun = lease_clock::now();
    const auto& found = some.look({.hosts = {local(mute.port()), local(free_port()), local(free_port()),
                                       {.host = "no-such-host.invalid", .port = "27017"}, local(shared_mongodb())}});
    BOOST_TEST((found.what == found_kind::primary), found.why);
    BOOST_TEST(found.at.port == std::to_string(shared_mongodb()));
    // The driver would wait two seconds for each.
    BOOST_TEST((lease_clock::now() - begun < 2s));
}

BOOST_AUTO_TEST_CASE(why_there_is_nobody_is_said_of_each_host)
{
    relay mute(shared_mongodb());
    mute.silence(true);
    const auto dead = local(free_port());
    expedition some;
    pretender secondary(*some.io, says(member_of("s", R"("isWritablePrimary": false, "secondary": true)")));
    const auto& found = some.look(
        {.hosts = {local(mute.port()), dead, {.host = "no-such-host.invalid", .port = "1"}, local(secondary.port())}},
        500ms);
    BOOST_TEST((found.what == found_kind::nobody));
    for (const auto& name :
        {local(mute.port()).name(), dead.name(), std::string("no-such-host.invalid:1"), local(secondary.port()).name()})
        BOOST_TEST(found.why.find(name + ": ") != std::string::npos, found.why);
    BOOST_TEST(found.why.find(dead.name() + ": Connection refused") != std::string::npos, found.why);
    BOOST_TEST(found.why.find("is a secondary") != std::string::npos, found.why);
}

BOOST_AUTO_TEST_CASE(a_secondary_leads_to_the_primary_unless_it_is_meant_itself)
{
    expedition some;
    pretender secondary(*some.io, says(secondary_that_names(shared_mongodb())));
    const auto& found = some.look({.hosts = {local(secondary.port())}});
    BOOST_TEST((found.what == found_kind::primary), found.why);
    BOOST_TEST(found.at.port == std::to_string(shared_mongodb()));
    const auto& direct = some.look({.hosts = {local(secondary.port())}, .direct = true});
    BOOST_TEST((direct.what == found_kind::nobody));
}

BOOST_AUTO_TEST_CASE(what_a_secondary_says_is_not_believed_without_end)
{
    expedition some;
    std::string hosts;
    for (int n = 1; n < 200; ++n)
        hosts += "\"127.0.0." + std::to_string(n) + ':' + std::to_string(free_port()) + "\", ";
    pretender endless(*some.io,
        says(member_of("s", R"("isWritablePrimary": false, "secondary": true, "primary": "]:[x:y", "hosts": [)" +
                                hosts + R"(7, ""])")));
    const auto& found = some.look({.hosts = {local(endless.port())}}, 5s);
    BOOST_TEST((found.what == found_kind::nobody));
    BOOST_TEST(std::ranges::count(found.why, ';') == 99, found.why);
}

BOOST_AUTO_TEST_CASE(how_long_it_took_to_connect_does_not_count_as_the_servers_time)
{
    relay slow(shared_mongodb());
    slow.silence(true);
    expedition some;
    some.send({.hosts = {local(slow.port())}});
    some.io->run_for(50ms);
    const auto connects = lease_clock::now();
    slow.silence(false);
    BOOST_TEST((some.wait().asked >= connects));
}

BOOST_AUTO_TEST_CASE(nobody_is_told_once_it_is_closed_and_nothing_is_left_to_run)
{
    relay mute(shared_mongodb());
    mute.silence(true);
    expedition some;
    some.send({.hosts = {local(mute.port())}});
    asio::post(some.of_context->strand, [on = some.of_context] { on->sent->close(); });
    some.io->run_for(patience);
    BOOST_TEST(some.io->stopped());
    BOOST_TEST(!some.of_context->found.has_value());
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_search)
{
    for (int steps = 1;; ++steps) {
        expedition some;
        pretender secondary(*some.io, says(secondary_that_names(shared_mongodb())));
        some.send({.hosts = {local(secondary.port()), local(free_port())}});
        for (int n = 0; n < steps && !some.of_context->found; ++n)
            some.io->run_one();
        if (some.of_context->found)
            break;
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
