// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/callback_command.hpp"

#include "fake_server.hpp"
#include "pool_fixture.hpp"
#include "server.hpp"
#include "support/faulty_proxy.hpp"
#include "support/handler_time.hpp"
#include "support/sockets.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

namespace {

void open_connections(pool_fixture& test, int count)
{
    std::vector<recorded_command_ptr> asked;
    for (int n = 0; n < count; ++n)
        asked.push_back(test.ask(ping));
    for (const auto& each : asked)
        BOOST_TEST(test.wait_for(each).outcome == kind::done);
}

/// Returns after the connections through `link` have ended.
void end_connections(faulty_proxy& link)
{
    link.refuse(true);
    // When the proxy refuses another connection, it has closed the existing ones.
    pool_fixture other(link.port());
    BOOST_TEST(other.ask_and_wait(ping).outcome == kind::unsent);
    link.refuse(false);
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_connection_pool, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(dated_hello_excludes_the_time_to_connect)
{
    faulty_proxy slow(shared_mongodb());
    slow.silence(true);
    pool_fixture test(slow.port());
    std::optional<lease_clock::time_point> asked;
    const auto hello =
        std::make_shared<callback_command>(command::dated_hello{}, [&](const answer& got) { asked = got.sent_at; });
    test.post([&](connection_pool& all) { all.ask(hello, lease_clock::now() + patience); });
    test.io->run_for(50ms);
    const auto connects = lease_clock::now();
    slow.silence(false);
    run_until(*test.io, [&] { return asked.has_value(); });
    BOOST_TEST((asked >= connects));
}

BOOST_AUTO_TEST_CASE(concurrent_commands_share_the_connections)
{
    pool_fixture test(shared_mongodb(), 3);
    std::vector<recorded_command_ptr> asked;
    for (int n = 0; n < 30; ++n)
        asked.push_back(test.ask(ping));
    std::size_t max_open = 0;
    std::size_t max_waiting = 0;
    for (const auto& each : asked) {
        run_until(*test.io, [&] {
            max_open = std::max(max_open, test.all().open_count());
            max_waiting = std::max(max_waiting, test.all().waiting_count());
            return each->done();
        });
        BOOST_TEST(each->result().outcome == kind::done, each->result().text);
    }
    BOOST_TEST(max_open == 3u);
    BOOST_TEST(max_waiting == 27u);
    BOOST_TEST(test.all().in_flight() == 0u);
}

BOOST_AUTO_TEST_CASE(commands_wait_in_the_order_of_their_arrival)
{
    pool_fixture test(shared_mongodb(), 1);
    std::string order;
    std::vector<recorded_command_ptr> asked;
    for (char name = 'a'; name <= 'f'; ++name)
        asked.push_back(test.ask(ping, patience, [&order, name] { order += name; }));
    static_cast<void>(test.wait_for(asked.back()));
    BOOST_TEST(order == "abcdef");
}

BOOST_AUTO_TEST_CASE(waiting_command_can_be_withdrawn)
{
    pool_fixture test(shared_mongodb(), 1);
    const auto first = test.ask(ping);
    const auto second = test.ask(count_up);
    const auto third = test.ask(ping);
    test.post([&](connection_pool& all) {
        BOOST_TEST(!all.withdraw(*first));
        BOOST_TEST(all.withdraw(*second));
        BOOST_TEST(!all.withdraw(*second));
    });
    BOOST_TEST(test.wait_for(third).outcome == kind::done);
    BOOST_TEST(!second->done());
}

BOOST_AUTO_TEST_CASE(refused_command_keeps_its_connection)
{
    pool_fixture test(shared_mongodb(), 1);
    const auto& got = test.ask_and_wait(R"({"noSuchCommand": 1})");
    BOOST_TEST(got.outcome == kind::refused);
    BOOST_TEST(got.code == 59);
    BOOST_TEST(got.text.find("noSuchCommand") != std::string::npos, got.text);
    BOOST_TEST(test.all().open_count() == 1u);
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
}

BOOST_AUTO_TEST_CASE(free_connection_is_replaced_after_its_end)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 3);
    open_connections(test, 3);
    BOOST_TEST(test.all().open_count() == 3u);
    end_connections(link);
    const auto& got = test.ask_and_wait(ping);
    BOOST_TEST(got.outcome == kind::done, got.text);
    BOOST_TEST(test.all().open_count() == 1u);
}

/// The server may have been replaced, so its owner has to check it before the next command.
BOOST_AUTO_TEST_CASE(end_of_all_connections_is_reported_if_a_command_notices_it_first)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 3);
    open_connections(test, 3);
    int reports = 0;
    const auto asked = std::make_shared<recorded_command>("colock_test", ping, nullptr);
    test.post([&](connection_pool& all) {
        all.on_all_stale([&] { ++reports; });
        end_connections(link);
        all.ask(asked, lease_clock::now() + patience);
        BOOST_TEST(!asked->done());
    });
    BOOST_TEST(test.wait_for(asked).outcome == kind::unsent);
    BOOST_TEST(reports == 1);
    BOOST_TEST(test.all().open_count() == 0U);
}

BOOST_AUTO_TEST_CASE(free_connections_are_closed)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 3);
    open_connections(test, 3);
    link.silence(true);
    const auto in_flight = test.ask(ping);
    run_until(*test.io, [&] { return test.all().in_flight() == 1; });
    test.post([](connection_pool& all) {
        all.close_free();
        BOOST_TEST(all.open_count() == 1u);
        BOOST_TEST(all.in_flight() == 1u);
    });
    link.silence(false);
    BOOST_TEST(test.wait_for(in_flight).outcome == kind::done);
    // The connection is free now.
    test.post([](connection_pool& all) { all.close_free(); });
    run_until(*test.io, [&] { return test.all().open_count() == 0; });
    // No handler is left to run, and the next command opens a new connection.
    test.io->restart();
    test.io->run_for(patience);
    BOOST_TEST(test.io->stopped());
    test.io->restart();
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
}

BOOST_AUTO_TEST_CASE(a_large_document_passes_in_both_directions)
{
    pool_fixture test(shared_mongodb(), 1);
    const std::string text(1'000'000, 'x');
    const auto& got =
        test.ask_and_wait(R"({"findAndModify": "pool_test", "query": {"_id": "large"}, "update": {"t": ")" + text +
                          R"("}, "upsert": true, "new": true})");
    BOOST_TEST(got.outcome == kind::done, got.text);
    BOOST_TEST(got.reply.to_json().size() > text.size());
}

BOOST_AUTO_TEST_CASE(no_thread_is_started)
{
    // A sanitizer may have started a thread of its own.
    const auto before = threads_of_this_process();
    pool_fixture test(shared_mongodb());
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
    BOOST_TEST(threads_of_this_process() == before);
}

BOOST_AUTO_TEST_CASE(command_to_a_closed_port_is_unsent)
{
    pool_fixture test(free_port());
    const auto& got = test.ask_and_wait(ping);
    BOOST_TEST(got.outcome == kind::unsent);
    BOOST_TEST(got.cause == asio::error::connection_refused);
    BOOST_TEST(got.ends_connection);
    BOOST_TEST(test.all().open_count() == 0u);
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_is_given_up_at_the_deadline)
{
    faulty_proxy link(shared_mongodb());
    link.silence(true);
    pool_fixture test(link.port());
    // The event loop must not spin, although the driver polls repeatedly.
    check_not_blocking([&] {
        const auto asked = test.ask(ping, 200ms);
        const auto longest = longest_handler(*test.io, [&] { return asked->done(); });
        BOOST_TEST(asked->result().outcome == kind::unsent);
        BOOST_TEST(asked->result().cause == asio::error::timed_out);
        return longest;
    });
    link.silence(false);
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
}

BOOST_AUTO_TEST_CASE(a_command_whose_reply_is_lost_has_an_unknown_outcome)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 1);
    BOOST_TEST(test.ask_and_wait(R"({"delete": "pool_test", "deletes": [{"q": {"_id": "n"}, "limit": 1}]})").outcome ==
               kind::done);
    link.cut_at_bytes("findAndModify", loss::reply);
    const auto& got = test.ask_and_wait(count_up);
    BOOST_TEST(got.outcome == kind::unknown);
    BOOST_TEST(got.cause == asio::error::eof);
    BOOST_TEST(got.ends_connection);
    BOOST_TEST(test.all().open_count() == 0u);
    // The command was carried out nevertheless.
    const auto& again = test.ask_and_wait(count_up);
    BOOST_TEST(again.outcome == kind::done, again.text);
    BOOST_TEST(again.reply.to_json().find("\"n\" : 2") != std::string::npos, again.reply.to_json());
}

BOOST_AUTO_TEST_CASE(silent_connection_is_given_up_at_the_deadline)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 1);
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
    bool is_in_time = false;
    // The event loop must not spin. The machine delays an attempt only sometimes.
    check_not_blocking([&] {
        std::chrono::nanoseconds longest{};
        for (int attempts = 0; attempts < 3 && !is_in_time; ++attempts) {
            link.silence(true);
            const auto begun = lease_clock::now();
            const auto asked = test.ask(ping, 200ms);
            longest = longest_handler(*test.io, [&] { return asked->done(); });
            BOOST_TEST(asked->result().outcome == kind::unknown);
            // The deadline applies, not the limit of two seconds that the driver has for a connection attempt.
            is_in_time = lease_clock::now() - begun < 1500ms;
            link.silence(false);
            BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
        }
        return longest;
    });
    BOOST_TEST(is_in_time);
}

BOOST_AUTO_TEST_CASE(driver_makes_no_second_connection)
{
    class persistent final : public task
    {
    public:
        void perform(::_mongoc_client_t& driver) noexcept override
        {
            for (const auto* const each : {ping, count_up, ping})
                got.push_back(mongo::detail::ask(driver, "colock_test", document::from_json(each)).outcome);
        }
        void fail(answer) noexcept override {}
        void set_cause(const error_code&, bool) override {}
        [[nodiscard]] bool ends_connection() const noexcept override { return true; }
        void on_end() override { done = true; }

        std::vector<kind> got;
        bool done = false;
    };
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port());
    link.cut_at_bytes("findAndModify", loss::reply);
    const auto asked = std::make_shared<persistent>();
    test.post([&](connection_pool& all) { all.ask(asked, lease_clock::now() + patience); });
    run_until(*test.io, [&] { return asked->done; });
    BOOST_TEST((asked->got == std::vector{kind::done, kind::unknown, kind::unsent}));
}

BOOST_AUTO_TEST_CASE(commands_in_flight_end_when_the_pool_is_closed)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 2);
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
    link.silence(true);
    const auto first = test.ask(ping);
    const auto second = test.ask(ping);
    run_until(*test.io, [&] { return test.all().in_flight() == 2; });
    test.post([](connection_pool& all) { all.close_all(); });
    BOOST_TEST(test.wait_for(first).outcome == kind::unknown);
    BOOST_TEST(first->result().cause == asio::error::operation_aborted);
    // The second connection was still being made.
    BOOST_TEST(test.wait_for(second).outcome == kind::unsent);
    // No handler is left to run.
    test.io->restart();
    test.io->run_for(patience);
    BOOST_TEST(test.io->stopped());
}

BOOST_AUTO_TEST_CASE(destroyed_context_drops_the_commands_in_flight)
{
    faulty_proxy link(shared_mongodb());
    pool_fixture test(link.port(), 2);
    BOOST_TEST(test.ask_and_wait(ping).outcome == kind::done);
    link.silence(true);
    const auto first = test.ask(ping);
    const auto second = test.ask(ping);
    const auto third = test.ask(ping);
    run_until(*test.io, [&] { return test.all().in_flight() == 2 && test.all().waiting_count() == 1; });
    test.io.reset();
    BOOST_TEST(!first->done());
    BOOST_TEST(!second->done());
    BOOST_TEST(!third->done());
}

BOOST_AUTO_TEST_CASE(server_that_the_driver_does_not_support_gets_no_command)
{
    bool is_sent = false;
    asio::io_context other_io;
    const fake_server old(other_io, [&](std::string_view command, const document&) {
        is_sent = is_sent || command == "findAndModify";
        return document::from_json(
            R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 5, "isWritablePrimary": true, "ismaster": true})");
    });
    pool_fixture test(old.port());
    const auto asked = test.ask(count_up);
    run_until(*test.io, [&] {
        other_io.poll();
        return asked->done();
    });
    BOOST_TEST(asked->result().outcome == kind::unsent);
    BOOST_TEST(!is_sent);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
