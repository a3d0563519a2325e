// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_discovery.hpp"

#include "fake_server.hpp"
#include "pool_fixture.hpp"
#include "server.hpp"
#include "support/faulty_proxy.hpp"
#include "support/jump.hpp"
#include "support/sockets.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using found_kind = discovery_result::kind;

destination local(std::uint16_t port)
{
    return {.host = "127.0.0.1", .port = std::to_string(port)};
}

/// A discovery and its result, on a context of its own.
struct discovery_state final : context_member
{
    void context_shutdown() noexcept override
    {
        discovery.reset();
        strand = {};
    }

    asio::any_io_executor strand;
    std::shared_ptr<server_discovery> discovery;
    std::optional<discovery_result> found;
};

struct discovery_fixture
{
    discovery_fixture()
    {
        state->strand = asio::make_strand(*io);
        join_context(io->get_executor(), state);
    }

    void send(discovery_params what, std::chrono::milliseconds connect_timeout = patience)
    {
        state->found.reset();
        for (auto& each : what.hosts)
            each.connect_timeout = connect_timeout;
        asio::post(state->strand, [env = state, what = std::move(what)]() mutable {
            env->discovery = std::make_shared<server_discovery>(env->strand, std::move(what));
            env->discovery->start([env](discovery_result found) { env->found = std::move(found); });
            // The handler must not be called from inside of `start`.
            BOOST_TEST(!env->found.has_value());
        });
    }
    const discovery_result& wait() const
    {
        run_until(*io, [this] { return state->found.has_value(); });
        return *state->found;
    }
    const discovery_result& look(discovery_params what, std::chrono::milliseconds connect_timeout = patience)
    {
        send(std::move(what), connect_timeout);
        return wait();
    }

    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
    std::shared_ptr<discovery_state> state = std::make_shared<discovery_state>();
};

std::string member_of(const std::string& set, const std::string& more)
{
    return R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "localTime": {"$date": {"$numberLong": "7"}},
        "setName": ")" +
           set + R"(", )" + more + "}";
}

/// Returns the behaviour of a server that sends this reply to every command.
fake_server::command_handler says(std::string reply)
{
    return [reply = std::move(reply)](std::string_view, const document&) { return document::from_json(reply); };
}

std::string secondary_that_names(std::uint16_t primary)
{
    const auto name = "127.0.0.1:" + std::to_string(primary);
    return member_of("secantus",
        R"("isWritablePrimary": false, "secondary": true, "primary": ")" + name + R"(", "hosts": [")" + name + R"("])");
}

/// A replica set with a host that does not respond, and with a member that is elected later.
struct election
{
    /// Number of commands before the first question is answered: the driver's greeting, and two for the clock.
    static constexpr int first_question_count = 3;

    /// \param first_as_primary value of `elected_at`
    explicit election(int first_as_primary)
        : elected_at(first_as_primary), member(*discovery.io, [this](std::string_view, const document&) {
              ++question_count;
              if (on_question)
                  on_question();
              return document::from_json(
                  member_of("s", question_count >= elected_at ? R"("isWritablePrimary": true)"
                                                              : R"("isWritablePrimary": false, "secondary": true)"));
          })
    {
        mute.silence(true);
    }
    [[nodiscard]] discovery_params params() const { return {.hosts = {local(mute.port()), local(member.port())}}; }

    faulty_proxy mute{shared_mongodb()};
    discovery_fixture discovery;
    /// Number of the first question to which the member answers that it is the primary.
    int elected_at;
    int question_count = 0;
    std::function<void()> on_question;
    fake_server member;
};

/// Runs handlers on the strand, one after the other.
void keep_busy(const asio::any_io_executor& strand, int handler_count)
{
    if (handler_count > 0)
        asio::post(strand, [=] { keep_busy(strand, handler_count - 1); });
}

/// Returns the name of the test server's replica set.
std::string set_of_test_server()
{
    discovery_fixture discovery;
    return discovery.look({.hosts = {local(shared_mongodb())}}).identity.set;
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_server_discovery, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_primary_is_found_with_its_clock, *boost::unit_test::precondition(not_ferretdb("replica set")))
{
    discovery_fixture discovery;
    const auto before = lease_clock::now();
    const auto& found = discovery.look({.hosts = {local(shared_mongodb())}});
    BOOST_TEST((found.outcome == found_kind::primary), found.reasons);
    BOOST_TEST(found.at.name() == local(shared_mongodb()).name());
    const auto now = lease_clock::now();
    BOOST_TEST((found.clock.age(now) >= 0s && found.clock.age(now) <= now - before));
    const auto ours =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
    // The server runs on this machine, so it uses the same clock.
    BOOST_TEST(std::abs(found.clock.last_reported() - ours.count()) < 60'000);
    BOOST_TEST(!found.identity.set.empty());
    BOOST_TEST(found.identity.max_wire_version > 0);
}

BOOST_AUTO_TEST_CASE(
    replica_set_with_another_name_is_misconfigured, *boost::unit_test::precondition(not_ferretdb("replica set")))
{
    const auto set = set_of_test_server();
    discovery_fixture discovery;
    BOOST_TEST(
        (discovery.look({.hosts = {local(shared_mongodb())}, .replica_set = set}).outcome == found_kind::primary));
    const auto& other = discovery.look({.hosts = {local(shared_mongodb())}, .replica_set = "another"});
    BOOST_TEST((other.outcome == found_kind::misconfigured));
    BOOST_TEST(other.reasons.find(set) != std::string::npos, other.reasons);
    // If a member of the right replica set has answered, an election may be in progress.
    fake_server electing(*discovery.io, says(member_of("another", R"("isWritablePrimary": false, "secondary": true)")));
    const auto& both =
        discovery.look({.hosts = {local(shared_mongodb()), local(electing.port())}, .replica_set = "another"});
    BOOST_TEST((both.outcome == found_kind::not_found));
}

BOOST_AUTO_TEST_CASE(
    unresponsive_dead_and_unknown_hosts_cause_no_delay, *boost::unit_test::precondition(not_ferretdb("replica set")))
{
    faulty_proxy mute(shared_mongodb());
    mute.silence(true);
    bool is_quick = false;
    // The machine delays an attempt only sometimes.
    for (int attempts = 0; attempts < 3 && !is_quick; ++attempts) {
        discovery_fixture discovery;
        const auto begun = lease_clock::now();
        const auto& found =
            discovery.look({.hosts = {local(mute.port()), local(free_port()), local(free_port()),
                                {.host = "no-such-host.invalid", .port = "27017"}, local(shared_mongodb())}});
        BOOST_TEST((found.outcome == found_kind::primary), found.reasons);
        BOOST_TEST(found.at.port == std::to_string(shared_mongodb()));
        // The driver alone would wait two seconds for each host.
        is_quick = lease_clock::now() - begun < 2s;
    }
    BOOST_TEST(is_quick);
}

BOOST_AUTO_TEST_CASE(failed_discovery_has_a_reason_for_each_host)
{
    faulty_proxy mute(shared_mongodb());
    mute.silence(true);
    const auto dead = local(free_port());
    discovery_fixture discovery;
    fake_server secondary(*discovery.io, says(member_of("s", R"("isWritablePrimary": false, "secondary": true)")));
    const auto& found = discovery.look(
        {.hosts = {local(mute.port()), dead, {.host = "no-such-host.invalid", .port = "1"}, local(secondary.port())}},
        2s);
    BOOST_TEST((found.outcome == found_kind::not_found));
    for (const auto& name :
        {local(mute.port()).name(), dead.name(), std::string("no-such-host.invalid:1"), local(secondary.port()).name()})
        BOOST_TEST(found.reasons.find(name + ": ") != std::string::npos, found.reasons);
    BOOST_TEST(found.reasons.find(dead.name() + ": Connection refused") != std::string::npos, found.reasons);
    BOOST_TEST(found.reasons.find("is a secondary") != std::string::npos, found.reasons);
}

BOOST_AUTO_TEST_CASE(secondary_leads_to_the_primary_unless_the_connection_is_direct)
{
    discovery_fixture discovery;
    fake_server secondary(*discovery.io, says(secondary_that_names(shared_mongodb())));
    const auto& found = discovery.look({.hosts = {local(secondary.port())}});
    BOOST_TEST((found.outcome == found_kind::primary), found.reasons);
    BOOST_TEST(found.at.port == std::to_string(shared_mongodb()));
    const auto& direct = discovery.look({.hosts = {local(secondary.port())}, .direct = true});
    BOOST_TEST((direct.outcome == found_kind::not_found));
}

BOOST_AUTO_TEST_CASE(host_that_is_named_late_has_its_own_connect_timeout)
{
    constexpr std::chrono::milliseconds connect_timeout = 2s;
    faulty_proxy mute(shared_mongodb());
    mute.silence(true);
    discovery_fixture discovery;
    std::optional<lease_clock::time_point> named;
    fake_server secondary(*discovery.io, [&](std::string_view, const document&) {
        if (!named)
            named = lease_clock::now();
        return document::from_json(secondary_that_names(mute.port()));
    });
    faulty_proxy slow(secondary.port());
    slow.silence(true);
    discovery.send({.hosts = {local(slow.port())}}, connect_timeout);
    discovery.io->run_for(connect_timeout / 10);
    slow.silence(false);
    BOOST_TEST((discovery.wait().outcome == found_kind::not_found));
    BOOST_TEST((lease_clock::now() - named.value() >= connect_timeout));
}

BOOST_AUTO_TEST_CASE(members_are_asked_again_while_a_mute_host_is_awaited)
{
    election test(election::first_question_count + 2);
    const auto& found = test.discovery.look(test.params(), 10min);
    BOOST_TEST((found.outcome == found_kind::primary), found.reasons);
    BOOST_TEST(found.at.port == std::to_string(test.member.port()));
}

BOOST_AUTO_TEST_CASE(member_that_drops_a_connection_is_asked_again)
{
    election test(election::first_question_count + 2);
    faulty_proxy link(test.member.port());
    test.discovery.send({.hosts = {local(test.mute.port()), local(link.port())}}, 10min);
    run_until(*test.discovery.io, [&] { return test.question_count > election::first_question_count; });
    link.refuse(true);
    // At least one question fails.
    test.discovery.io->run_for(1s);
    BOOST_TEST(!test.discovery.state->found.has_value());
    link.refuse(false);
    const auto& found = test.discovery.wait();
    BOOST_TEST((found.outcome == found_kind::primary), found.reasons);
}

BOOST_AUTO_TEST_CASE(member_whose_last_question_has_failed_belongs_to_the_replica_set)
{
    election test(1000);
    faulty_proxy link(test.member.port());
    fake_server other(*test.discovery.io, says(member_of("other", R"("isWritablePrimary": true)")));
    test.discovery.send(
        {.hosts = {local(test.mute.port()), local(link.port()), local(other.port())}, .replica_set = "s"}, 2s);
    run_until(*test.discovery.io, [&] { return test.question_count > election::first_question_count; });
    link.refuse(true);
    const auto& found = test.discovery.wait();
    BOOST_TEST((found.outcome == found_kind::not_found), found.reasons);
}

BOOST_AUTO_TEST_CASE(question_that_is_due_while_an_answer_is_processed_does_not_replace_it)
{
    const virtual_clock clock;
    election test(election::first_question_count + 1);
    // Makes the context compare its timers with the clock again.
    std::optional<lease_timer> poke;
    test.on_question = [&] {
        if (test.question_count > test.elected_at)
            test.elected_at = 1000;
        if (test.question_count != test.elected_at)
            return;
        // The next question becomes due. A busy strand makes the timer and the answer wait for the same handler.
        virtual_clock::skip(500ms);
        poke.emplace(test.discovery.io->get_executor(), lease_clock::time_point::min());
        poke->async_wait([](error_code) {});
        keep_busy(test.discovery.state->strand, 100);
    };
    const auto& found = test.discovery.look(test.params(), 2s);
    BOOST_TEST((found.outcome == found_kind::primary), found.reasons);
}

BOOST_AUTO_TEST_CASE(server_that_the_driver_does_not_support_is_misconfigured)
{
    discovery_fixture discovery;
    fake_server old(*discovery.io,
        says(R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 5, "isWritablePrimary": true, "ismaster": true})"));
    const auto& found = discovery.look({.hosts = {local(old.port())}});
    BOOST_TEST((found.outcome == found_kind::misconfigured));
    BOOST_TEST(found.reasons.find("is older than MongoDB 5.0") != std::string::npos, found.reasons);
}

BOOST_AUTO_TEST_CASE(number_of_named_hosts_is_limited)
{
    discovery_fixture discovery;
    std::string hosts;
    for (int n = 1; n < 200; ++n)
        hosts += "\"127.0.0." + std::to_string(n) + ':' + std::to_string(free_port()) + "\", ";
    fake_server endless(*discovery.io,
        says(member_of("s", R"("isWritablePrimary": false, "secondary": true, "primary": "]:[x:y", "hosts": [)" +
                                hosts + R"(7, ""])")));
    const auto& found = discovery.look({.hosts = {local(endless.port())}}, 5s);
    BOOST_TEST((found.outcome == found_kind::not_found));
    BOOST_TEST(std::ranges::count(found.reasons, ';') == 99, found.reasons);
}

BOOST_AUTO_TEST_CASE(time_to_connect_does_not_count_as_server_time)
{
    faulty_proxy slow(shared_mongodb());
    slow.silence(true);
    discovery_fixture discovery;
    discovery.send({.hosts = {local(slow.port())}});
    discovery.io->run_for(50ms);
    const auto connects = lease_clock::now();
    slow.silence(false);
    const auto& clock = discovery.wait().clock;
    const auto now = lease_clock::now();
    BOOST_TEST((now - clock.age(now) >= connects));
}

BOOST_AUTO_TEST_CASE(closed_discovery_does_not_call_its_handler)
{
    faulty_proxy mute(shared_mongodb());
    mute.silence(true);
    discovery_fixture discovery;
    discovery.send({.hosts = {local(mute.port())}});
    asio::post(discovery.state->strand, [env = discovery.state] { env->discovery->close(); });
    discovery.io->run_for(patience);
    BOOST_TEST(discovery.io->stopped());
    BOOST_TEST(!discovery.state->found.has_value());
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_repeated_question)
{
    for (int steps = 0;; ++steps) {
        election test(election::first_question_count + 1);
        auto& discovery = test.discovery;
        discovery.send(test.params(), 10min);
        run_until(*discovery.io, [&] { return test.question_count > election::first_question_count; });
        for (int n = 0; n < steps && !discovery.state->found; ++n)
            discovery.io->run_one();
        if (discovery.state->found)
            break;
    }
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_search)
{
    for (int steps = 1;; ++steps) {
        discovery_fixture discovery;
        fake_server secondary(*discovery.io, says(secondary_that_names(shared_mongodb())));
        discovery.send({.hosts = {local(secondary.port()), local(free_port())}});
        for (int n = 0; n < steps && !discovery.state->found; ++n)
            discovery.io->run_one();
        if (discovery.state->found)
            break;
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
