// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/localhost.hpp"
#include "support/peer.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace colock::testing {
namespace {

using namespace std::string_literals;

/// How long the longest handler takes. Waits do not count, so what is waited for is looked for again and again.
std::chrono::steady_clock::duration longest_until(client& of, const std::function<bool()>& reached)
{
    using clock = std::chrono::steady_clock;
    clock::duration longest{};
    for (const auto limit = clock::now() + 30s; !reached();) {
        const auto before = clock::now();
        BOOST_TEST_REQUIRE((before < limit));
        of.io->restart();
        if (of.io->poll_one() == 0)
            std::this_thread::sleep_for(1ms);
        else
            longest = std::max(longest, clock::now() - before);
    }
    return longest;
}

/// Of 10 s, for session 1, with a password.
const std::string whole_greeting =
    "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\x01\0\0\0\x10"s + std::string(16, 'p') + "\0"s;

std::shared_ptr<session> start_session(client& beside, std::uint16_t port, const std::shared_ptr<session_notes>& told)
{
    auto made = session::make(asio::make_strand(beside.io->get_executor()),
        {.where = {.servers = {{"127.0.0.1", std::to_string(port)}}}, .session_timeout = 2s}, told);
    made->start();
    return made;
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_sessions)

BOOST_AUTO_TEST_CASE(one_connects_and_proves_that_it_lives)
{
    client one(shared_zookeeper());
    BOOST_TEST(!one.talk->connected());
    BOOST_TEST(!one.talk->life().bound());
    const auto begun = lease_clock::now();
    one.connect();
    BOOST_TEST(one.told->connections == 1);
    BOOST_TEST(one.talk->life().id() != 0);
    BOOST_TEST((one.talk->life().timeout() == 6s));
    BOOST_TEST_REQUIRE(one.talk->life().bound());
    const auto first = one.talk->life().bound()->valid_until();
    BOOST_TEST((first > begun));
    BOOST_TEST((first < lease_clock::now() + 6s));
    // Beats go on by themselves.
    one.until([&] { return one.talk->life().bound()->valid_until() > first + 1s; });
    BOOST_TEST(one.told->suspensions == 0);
}

BOOST_AUTO_TEST_CASE(the_server_decides_on_the_timeout)
{
    client one(shared_zookeeper(), 1h);
    one.connect();
    BOOST_TEST((one.talk->life().timeout() == 10s));
}

BOOST_AUTO_TEST_CASE(a_server_is_found_by_its_name, *boost::unit_test::precondition(knows_localhost))
{
    client one(
        std::vector<endpoint>{{"no.such.host.invalid", "2181"}, {"localhost", std::to_string(shared_zookeeper())}}, 6s);
    one.connect();
}

BOOST_AUTO_TEST_CASE(of_several_servers_one_that_answers_is_found)
{
    for (int dead = 1; dead < 5; ++dead) {
        std::vector<endpoint> servers{{"127.0.0.1", std::to_string(shared_zookeeper())}};
        for (int i = 0; i < dead; ++i)
            servers.push_back({"127.0.0.1", std::to_string(free_port())});
        client one(servers, 6s);
        one.connect();
    }
}

BOOST_AUTO_TEST_CASE(that_no_server_answers_is_told_with_a_reason)
{
    client one(free_port());
    one.until([&] { return one.told->unreachable.size() > 1; });
    BOOST_TEST(one.told->unreachable.front().find("refused") != std::string::npos, one.told->unreachable.front());
    // With a rest between two rounds.
    const auto begun = lease_clock::now();
    const auto rounds = one.told->unreachable.size();
    one.until([&] { return one.told->unreachable.size() == rounds + 2; });
    BOOST_TEST((lease_clock::now() - begun >= 100ms));
    client nowhere(std::vector<endpoint>{{"no.such.host.invalid", "2181"}}, 6s);
    nowhere.until([&] { return nowhere.told->unreachable.size() > 1; });
    BOOST_TEST(nowhere.told->unreachable.front().starts_with("no.such.host.invalid: "));
    BOOST_TEST((nowhere.told->causes.front() == asio::error::host_not_found));
}

BOOST_AUTO_TEST_CASE(cause_tells_a_refused_connection_from_a_mute_server)
{
    const auto port = free_port();
    client refused(port);
    refused.until([&] { return !refused.told->unreachable.empty(); });
    BOOST_TEST(refused.told->unreachable.front() == "127.0.0.1:" + std::to_string(port) + ": Connection refused");
    BOOST_TEST((refused.told->causes.front() == asio::error::connection_refused));
    zookeeper_server paused;
    paused.pause();
    client mute(paused.port(), 2s);
    mute.until([&] { return !mute.told->unreachable.empty(); });
    BOOST_TEST(mute.told->unreachable.front() == "127.0.0.1:" + std::to_string(paused.port()) + ": no answer in time");
    BOOST_TEST((mute.told->causes.front() == asio::error::timed_out));
    paused.resume();
}

BOOST_AUTO_TEST_CASE(a_session_goes_on_after_its_connection_was_cut)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(one.make("cut", node_kind::ephemeral).ok());
    BOOST_TEST(other.make("watched").ok());
    BOOST_TEST(one.read_and_watch("watched").ok());
    const auto id = one.talk->life().id();
    const auto bound = one.talk->life().bound();

    link.refuse(true);
    one.until([&] { return one.told->suspensions == 1; });
    BOOST_TEST(!one.talk->connected());
    BOOST_TEST((one.exists("cut").what == status::unsent));
    BOOST_TEST(other.remove("watched").ok());
    link.refuse(false);
    one.connect();
    BOOST_TEST(one.talk->life().id() == id);
    BOOST_TEST(one.talk->life().bound() == bound);
    BOOST_TEST(one.read("cut").stat.ephemeral_owner == id);
    // What was changed meanwhile is told.
    one.until([&] { return !one.told->changed.empty(); });
    BOOST_TEST((one.told->changed == std::vector{one.path("watched")}));
    BOOST_TEST(one.told->expired == 0);
}

BOOST_AUTO_TEST_CASE(a_server_that_was_away_for_long_is_found_soon)
{
    relay link(shared_zookeeper());
    client one(link.port(), 10s);
    one.connect();
    link.refuse(true);
    one.until([&] { return one.told->unreachable.size() == 7; });
    link.refuse(false);
    const auto back = lease_clock::now();
    one.connect();
    BOOST_TEST((lease_clock::now() - back < 1s));
}

BOOST_AUTO_TEST_CASE(more_watches_than_a_packet_takes_cut_no_connection)
{
    constexpr int count = 12'000;
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    const std::string folder = "many-" + std::string(90, 'm');
    BOOST_TEST(one.make(folder).ok());
    int answered = 0;
    for (int i = 0; i < count; ++i) {
        const auto path = one.path(folder) + '/' + std::to_string(i);
        one.talk->ask().create(path, {}, node_kind::ephemeral, replied());
        one.talk->ask().read_and_watch(path, [&](const reply& got) { answered += got.ok(); });
        if (i % 100 == 99)
            one.until([&] { return answered == i + 1; });
    }
    link.refuse(true);
    one.until([&] { return one.told->suspensions == 1; });
    link.refuse(false);
    one.connect();
    BOOST_TEST(one.told->suspensions == 1);
    // Any of them may have changed.
    BOOST_TEST((one.told->changed == std::vector{std::string()}));
}

BOOST_AUTO_TEST_CASE(many_cuts_in_a_row_do_no_harm)
{
    relay link(shared_zookeeper());
    client one(link.port(), 10s);
    one.connect();
    const auto id = one.talk->life().id();
    for (int i = 1; i <= 10; ++i) {
        link.refuse(true);
        one.until([&] { return one.told->suspensions == i; });
        link.refuse(false);
        one.connect();
        BOOST_TEST(one.talk->life().id() == id);
    }
}

BOOST_AUTO_TEST_CASE(a_request_without_an_answer_is_found_out_in_the_same_session)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    link.cut_at_bytes("/lost-reply", loss::reply);
    BOOST_TEST((one.make("lost-reply", node_kind::ephemeral).what == status::unanswered));
    one.connect();
    BOOST_TEST(!one.is_gone("lost-reply"));
    link.cut_at_bytes("/lost-request", loss::request);
    BOOST_TEST((one.make("lost-request", node_kind::ephemeral).what == status::unanswered));
    one.connect();
    BOOST_TEST(one.is_gone("lost-request"));
}

BOOST_AUTO_TEST_CASE(a_request_that_cannot_be_written_any_more_is_told_and_never_sent)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    client witness(link.port());
    witness.connect();
    const auto id = one.talk->life().id();
    std::vector<status> told;
    const auto note = [&](const reply& got) { told.push_back(got.what); };
    // A connection that ends with something unread is reset, and the next write fails at once.
    link.silence(true);
    one.talk->ask().create(one.path("first"), "", node_kind::ephemeral, note);
    run_ready(*one.io);
    link.refuse(true);
    witness.until([&] { return witness.told->suspensions == 1; });
    link.silence(false);
    link.refuse(false);
    one.talk->ask().create(one.path("second"), "", node_kind::ephemeral, note);
    one.talk->ask().create(one.path("third"), "", node_kind::ephemeral, note);
    one.until([&] { return told.size() == 3; });
    BOOST_TEST((std::ranges::find(told, status::ok) == told.end()));
    one.connect();
    BOOST_TEST(one.talk->life().id() == id);
    for (const auto* const name : {"first", "second", "third"})
        BOOST_TEST(one.is_gone(name), name);
    BOOST_TEST(one.make("first", node_kind::ephemeral).ok());
}

BOOST_AUTO_TEST_CASE(a_session_goes_on_after_its_server_has_died_and_returned)
{
    zookeeper_server server;
    client one(server.port(), 10s);
    one.connect();
    one.make("kept", node_kind::ephemeral);
    const auto id = one.talk->life().id();
    server.kill();
    one.until([&] { return one.told->suspensions == 1; });
    server.start();
    one.connect();
    BOOST_TEST(one.read("kept").stat.ephemeral_owner == id);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_session_at_the_server_is_told)
{
    client one(shared_zookeeper());
    one.connect();
    one.make("expired", node_kind::ephemeral);
    const auto bound = one.talk->life().bound();
    end_session(shared_zookeeper(), one.talk->life().id());
    one.until([&] { return one.told->expired == 1; });
    BOOST_TEST(bound->has_ended(lease_clock::now()));
    BOOST_TEST((one.make("expired").what == status::unsent));
    BOOST_TEST(one.close(1s));
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(other.is_gone("expired"));
}

BOOST_AUTO_TEST_CASE(a_black_hole_ends_the_bound_before_the_server_counts_the_session_out)
{
    relay link(shared_zookeeper());
    client one(link.port(), 2s);
    one.connect();
    one.make("held", node_kind::ephemeral);
    client other(shared_zookeeper());
    other.connect();
    const auto bound = one.talk->life().bound();
    link.silence(true);
    const auto silent = lease_clock::now();
    one.until([&] { return bound->has_ended(lease_clock::now()); });
    BOOST_TEST((lease_clock::now() < silent + 2s));
    BOOST_TEST(!other.is_gone("held"));
    // It was given up before the driver would have; which of the two comes first depends on how slowly beats are
    // answered.
    one.until([&] { return one.told->suspensions == 1; });
    for (const auto& line : one.told->log)
        BOOST_TEST(line.find("timed out") == std::string::npos, line);
    other.until([&] { return other.is_gone("held"); });
    link.silence(false);
    one.until([&] { return one.told->expired == 1; });
}

BOOST_AUTO_TEST_CASE(a_session_that_was_believed_over_and_comes_back_has_another_bound)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    const auto bound = one.talk->life().bound();
    bound->end();
    link.refuse(true);
    one.until([&] { return one.told->suspensions == 1; });
    link.refuse(false);
    one.connect();
    BOOST_TEST(one.told->outlived == 1);
    BOOST_TEST(one.talk->life().bound() != bound);
    BOOST_TEST(!one.talk->life().bound()->has_ended(lease_clock::now()));
}

BOOST_AUTO_TEST_CASE(a_closed_session_leaves_nothing_at_once)
{
    client one(shared_zookeeper());
    one.connect();
    one.make("closed", node_kind::ephemeral);
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(!other.is_gone("closed"));
    BOOST_TEST(one.close(5s));
    BOOST_TEST(other.is_gone("closed"));
    BOOST_TEST(!one.talk->connected());
}

BOOST_AUTO_TEST_CASE(what_was_asked_before_a_close_goes_first)
{
    client one(shared_zookeeper());
    one.connect();
    int told = 0;
    for (int i = 0; i < 2000; ++i)
        one.talk->ask().write(one.path(".clock"), std::string(5000, 'x'), [&](const reply&) { ++told; });
    one.talk->ask().create(one.path("last"), "", node_kind::persistent, [&](const reply&) { ++told; });
    BOOST_TEST(one.close(10s));
    BOOST_TEST(told == 2001);
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(!other.is_gone("last"));
    BOOST_TEST(other.remove("last").ok());
    other.talk->ask().write(other.path(".clock"), "", replied());
}

BOOST_AUTO_TEST_CASE(a_close_that_is_not_answered_ends_at_its_deadline_and_blocks_nothing)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    one.make("unclosed", node_kind::ephemeral);
    link.silence(true);
    bool unanswered = false;
    one.talk->ask().create(one.path("late"), "", node_kind::ephemeral,
        [&](const reply& got) { unanswered = got.what == status::unanswered; });
    std::optional<bool> proven;
    const auto begun = std::chrono::steady_clock::now();
    one.talk->close(300ms, [&](bool got) { proven = got; });
    const auto longest = longest_until(one, [&] { return proven.has_value(); });
    BOOST_TEST(!*proven);
    BOOST_TEST(unanswered);
    BOOST_TEST((std::chrono::steady_clock::now() - begun >= 300ms));
    BOOST_TEST((longest < 100ms), std::chrono::duration<double>(longest).count() << " s");
}

BOOST_AUTO_TEST_CASE(a_close_whose_answer_is_lost_is_not_proven)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    // The request's number.
    link.cut_at_bytes("\x7f\xff\xff\xfe", loss::reply);
    BOOST_TEST(!one.close(5s));
    BOOST_TEST(link.cuts() == 1);
}

BOOST_AUTO_TEST_CASE(no_call_blocks_while_the_server_is_away)
{
    zookeeper_server server;
    client one(server.port(), 2s);
    one.connect();
    server.pause();
    auto longest = longest_until(one, [&] { return one.told->suspensions == 1; });
    longest = std::max(longest, longest_until(one, [&] { return one.told->unreachable.size() >= 2; }));
    server.kill();
    longest = std::max(longest, longest_until(one, [&] { return one.told->unreachable.size() >= 4; }));
    std::optional<bool> proven;
    one.talk->close(1s, [&](bool got) { proven = got; });
    longest = std::max(longest, longest_until(one, [&] { return proven.has_value(); }));
    BOOST_TEST(!*proven);
    // A call that blocks does so for a second and more.
    BOOST_TEST((longest < 100ms), std::chrono::duration<double>(longest).count() << " s");
}

BOOST_AUTO_TEST_CASE(a_session_that_never_was_is_closed_at_once)
{
    client one(free_port());
    one.until([&] { return !one.told->unreachable.empty(); });
    BOOST_TEST(one.close(10s));
}

BOOST_AUTO_TEST_CASE(what_is_no_zookeeper_server_is_told_from_one)
{
    client one(free_port());
    const peer stranger(*one.io, [](peer::talk& with) -> asio::awaitable<void> {
        co_await with.hear();
        co_await with.say("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: "
                          "close\r\n\r\n400 Bad Request");
        while (co_await with.hear()) {
        }
    });
    one.talk->abandon();
    const auto told = std::make_shared<session_notes>();
    const auto lost = start_session(one, stranger.port(), told);
    one.until([&] { return !told->unreachable.empty(); });
    BOOST_TEST(told->unreachable.front() == "what listens there is no ZooKeeper server");
    BOOST_TEST(told->connections == 0);
    lost->abandon();
}

BOOST_AUTO_TEST_CASE(a_greeting_may_come_in_pieces)
{
    for (const std::size_t first : {1U, 3U, 4U, 17U, 24U, 40U}) {
        client one(free_port());
        const peer server(*one.io, [&](peer::talk& with) -> asio::awaitable<void> {
            co_await with.hear();
            co_await with.say(whole_greeting.substr(0, first));
            asio::steady_timer pause(co_await asio::this_coro::executor, 20ms);
            co_await pause.async_wait();
            co_await with.say(whole_greeting.substr(first));
            while (co_await with.hear()) {
            }
        });
        const auto told = std::make_shared<session_notes>();
        const auto talk = start_session(one, server.port(), told);
        one.until([&] { return told->connections == 1; });
        BOOST_TEST(server.connections() == 1U);
        BOOST_TEST(told->unreachable.empty());
        talk->abandon();
    }
}

BOOST_AUTO_TEST_CASE(a_greeting_of_which_the_rest_does_not_come_is_given_up)
{
    for (const bool ends : {false, true}) {
        client one(free_port());
        int talks = 0;
        const peer server(*one.io, [&](peer::talk& with) -> asio::awaitable<void> {
            const bool is_first = ++talks == 1;
            co_await with.hear();
            co_await with.say(is_first ? whole_greeting.substr(0, 30) : whole_greeting);
            if (is_first && ends)
                co_return;
            while (co_await with.hear()) {
            }
        });
        const auto told = std::make_shared<session_notes>();
        const auto talk = start_session(one, server.port(), told);
        BOOST_TEST((longest_until(one, [&] { return told->connections == 1; }) < 100ms));
        BOOST_TEST(talks == 2);
        for (const auto& why : told->unreachable)
            BOOST_TEST(why != "what listens there is no ZooKeeper server");
        talk->abandon();
    }
}

/// They have met something else before, that spoke first, and had gone when they came again.
BOOST_AUTO_TEST_CASE(whatever_was_met_before_a_server_is_found)
{
    const std::string nonsense[] = {
        std::string(41, '\0'),
        // No timeout, no session: one that is over, which a new one cannot be.
        "\0\0\0\x25"s + std::string(19, '\0') + "\x10"s + std::string(17, '\0'),
        // It only reads.
        "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\x01\0\0\0\x10"s + std::string(16, 'p') + "\x01"s,
        "+OK ready, but not for that kind of client, whoever it may be",
        "220 ready",
    };
    for (const auto& text : nonsense) {
        for (const std::size_t piece : {5U, 100U}) {
            client one(free_port());
            relay link(shared_zookeeper());
            peer stranger(*one.io, [&](peer::talk& with) -> asio::awaitable<void> {
                co_await with.hear();
                for (std::size_t at = 0; at < text.size(); at += piece) {
                    co_await with.say(text.substr(at, piece));
                    asio::steady_timer pause(co_await asio::this_coro::executor, 5ms);
                    co_await pause.async_wait();
                }
            });
            link.lead_to(stranger.port());
            const auto told = std::make_shared<session_notes>();
            const auto talk = start_session(one, link.port(), told);
            one.until([&] { return !told->unreachable.empty(); });
            BOOST_TEST(told->unreachable.front() == "what listens there is no ZooKeeper server");
            BOOST_TEST(told->connections == 0);
            link.lead_to(shared_zookeeper());
            BOOST_TEST((longest_until(one, [&] { return told->connections == 1; }) < 100ms));
            std::optional<bool> proven;
            talk->close(10s, [&](bool got) { proven = got; });
            one.until([&] { return proven.has_value(); });
            BOOST_TEST(*proven);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_context_may_go_before_its_session)
{
    client one(shared_zookeeper());
    one.connect();
    bool told = false;
    one.talk->ask().create(one.path("inert"), "", node_kind::ephemeral, [&](const reply&) { told = true; });
    one.io.reset();
    BOOST_TEST(!told);
    BOOST_TEST(!one.talk->connected());
    one.talk->ask().exists("/", replied());
    one.talk->abandon();
    end_session(shared_zookeeper(), one.talk->life().id());
}

BOOST_AUTO_TEST_CASE(the_child_of_a_fork_leaves_its_parents_session_alone)
{
    client one(shared_zookeeper());
    one.connect();
    one.make("forked", node_kind::ephemeral);
    one.io->notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        one.io->notify_fork(asio::execution_context::fork_child);
        if (one.talk->connected())
            throw std::runtime_error("the child is connected as its parent is");
    });
    one.io->notify_fork(asio::execution_context::fork_parent);
    BOOST_TEST(wait_for(child) == 0);
    BOOST_TEST(!one.is_gone("forked"));
    BOOST_TEST(one.told->suspensions == 0);
}

BOOST_AUTO_TEST_CASE(whoever_closes_is_told_so_in_the_child_of_a_fork)
{
    relay link(shared_zookeeper());
    client one(link.port());
    one.connect();
    link.silence(true);
    std::optional<bool> proven;
    one.talk->close(30s, [&](bool got) { proven = got; });
    one.io->restart();
    one.io->run_for(50ms);
    BOOST_TEST(!proven.has_value());
    one.io->notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        one.io->notify_fork(asio::execution_context::fork_child);
        one.io->restart();
        one.io->run_for(10s);
        if (!one.io->stopped() || proven != false)
            throw std::runtime_error("the child waits for the end of its parent's session");
    });
    one.io->notify_fork(asio::execution_context::fork_parent);
    BOOST_TEST(wait_for(child) == 0);
    link.silence(false);
    one.until([&] { return proven.has_value(); });
    BOOST_TEST(*proven);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
