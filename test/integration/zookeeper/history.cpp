// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "one_server.hpp"
#include "support/driver.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

struct forgetful_server : one_server
{
    /// Long enough for a session to survive the start of other servers on the same processors.
    static constexpr std::chrono::milliseconds usual = 10s;

    /// As many transactions that the server may lose later, at least.
    void do_something(const locker& by)
    {
        for (int i = 0; i < 50; ++i)
            run(run(by.acquire("other")).release(on_failure::raise));
    }
    /// Restarts the server with what it had in `backup`; empty: with nothing.
    void restore(const std::filesystem::path& backup = {})
    {
        server->kill();
        std::filesystem::remove_all(server->data() / "version-2");
        if (!backup.empty())
            std::filesystem::copy(backup, server->data() / "version-2", std::filesystem::copy_options::recursive);
        server->start();
        back = lease_clock::now();
    }
    /// From now on the link ends each connection on which one of our sessions is asked for again, as a server does that
    /// knows fewer transactions than the session has seen. New sessions pass.
    void refuse_sessions()
    {
        std::vector<std::string> refused;
        for (const auto each : sessions_of(server->port(), chroot()))
            refused.push_back(bytes_of_session(each));
        BOOST_TEST_REQUIRE(refused.size() == 1U);
        std::vector<std::pair<std::string, loss>> all(1000, {refused.front(), loss::request});
        link.refuse(true);
        link.cut_at_bytes_in_turn(std::move(all));
        link.refuse(false);
    }
    /// Both are granted within the time that is promised after the server's return.
    void check_granted(running<lock>& waiting, const locker& by)
    {
        auto next = waiting.get(io);
        BOOST_TEST((lease_clock::now() - back < usual + 5s));
        BOOST_TEST(run(next.is_locked()));
        run(next.release(on_failure::raise));
        run(run(by.acquire("k")).release(on_failure::raise));
    }

    lease_clock::time_point back{};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_history, forgetful_server)

BOOST_AUTO_TEST_CASE(server_without_its_data_is_used_in_a_new_session)
{
    auto& one = add(usual);
    do_something(one);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    auto hears = start(io, held.lost());
    auto waiting = queue(add(usual));
    restore();
    BOOST_TEST((hears.get(io) == lost_reason::session));
    check_granted(waiting, one);
    BOOST_TEST(told->warned_of("history"));
    check_end();
}

/// The backup has the old sessions, too: the server ends them when their time is over.
BOOST_AUTO_TEST_CASE(server_with_a_backup_of_its_data_is_used_in_a_new_session)
{
    auto& one = add(usual);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    auto hears = start(io, held.lost());
    auto waiting = queue(add(usual));
    const temporary_folder backup;
    const auto copy = backup / "version-2";
    server->kill();
    std::filesystem::copy(server->data() / "version-2", copy, std::filesystem::copy_options::recursive);
    server->start();
    until([&] { return told->reconnections == 2; });
    do_something(one);
    // Both sessions have written since: what they have only read has no number that they could compare.
    until([&, until = lease_clock::now() + 3s] { return lease_clock::now() > until; });
    BOOST_TEST(held.held());
    restore(copy);
    BOOST_TEST((hears.get(io) == lost_reason::session));
    check_granted(waiting, one);
    BOOST_TEST(told->warned_of("history"));
    check_end();
}

BOOST_AUTO_TEST_CASE(request_without_an_answer_is_unproven_after_the_history_is_lost)
{
    const driver by(io, make_adapter(options(usual, zookeeper_url(link.port()))));
    const auto other = driver::exclusive("other");
    for (int i = 0; i < 50; ++i) {
        by.grant(other);
        by.give_back(other);
    }
    const auto unknown = driver::one_attempt("unknown");
    link.cut_at_bytes("/unknown/", loss::time);
    auto created = start(io, by.backend().create(sent_now(unknown)));
    until([&] { return link.cuts() == 1; });
    server->kill();
    link.refuse(true);
    BOOST_TEST((created.get(io).status == create_status::failed));
    link.refuse(false);
    restore();
    // In the next session.
    by.grant(driver::exclusive("another"));
    const auto got = by.abandon(unknown);
    BOOST_TEST((got.status == release_status::failed));
    BOOST_TEST_REQUIRE(got.error);
    BOOST_TEST((got.error->code == errc::outcome_unknown));
}

BOOST_AUTO_TEST_CASE(abandoned_acquire_is_settled_unproven_after_the_history_is_lost)
{
    auto& one = add_linked(usual);
    do_something(one);
    link.cut_at_bytes("/unknown/", loss::time);
    auto acquiring = start(io, one.acquire("unknown", {.retry = retry_policy::forever().total_time(1s)}));
    until([&] { return link.cuts() == 1; });
    link.refuse(true);
    BOOST_CHECK_THROW(static_cast<void>(acquiring.get(io)), error);
    BOOST_TEST(one.stats().settling == 1U);
    restore();
    link.refuse(false);
    until([&] { return one.stats().settling == 0; });
    BOOST_TEST((lease_clock::now() - back < usual + 5s));
    BOOST_TEST(one.stats().unproven == 1U);
    run(run(one.acquire("unknown")).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(session_that_is_refused_for_a_while_loses_nothing_while_the_history_is_kept)
{
    auto& one = add_linked(10s);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    client beside(server->port());
    beside.connect();
    const auto count_writes = [&] {
        run_ready(*beside.io);
        return beside.finish([&](replied done) { beside.talk->ask().read(chroot() + "/.clock", std::move(done)); })
            .stat.version;
    };
    refuse_sessions();
    until([&] { return told->suspensions == 1; });
    // It is only asked in another session whether that is so.
    const auto before = count_writes();
    until([&] { return count_writes() > before; });
    BOOST_TEST(held.held());
    link.cut_at_any({}, loss::request);
    until([&] { return told->reconnections == 1; });
    BOOST_TEST(held.held());
    BOOST_TEST(run(held.is_locked()));
    BOOST_TEST(told->warnings.empty());
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
