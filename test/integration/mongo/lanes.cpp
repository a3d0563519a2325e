// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "benchmarks/longest_handler.hpp"
#include "mongo/commands/question.hpp"
#include "scene.hpp"
#include "server.hpp"
#include "support/relay.hpp"
#include "support/sockets.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {

namespace {

void open_lanes(scene& test, int count)
{
    std::vector<noted_ptr> asked;
    for (int n = 0; n < count; ++n)
        asked.push_back(test.ask(ping));
    for (const auto& each : asked)
        BOOST_TEST(test.wait_for(each).what == kind::done);
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_lanes, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_command_is_answered)
{
    scene test(shared_mongodb());
    const auto& got = test.say(ping);
    BOOST_TEST(got.what == kind::done, got.why);
    BOOST_TEST(!got.spoils);
    BOOST_TEST(got.reply.to_json().find("\"ok\" : 1") != std::string::npos, got.reply.to_json());
}

BOOST_AUTO_TEST_CASE(a_clock_is_dated_without_the_time_that_connecting_takes)
{
    relay slow(shared_mongodb());
    slow.silence(true);
    scene test(slow.port());
    std::optional<lease_clock::time_point> asked;
    const auto hello =
        std::make_shared<question>(command::dated_hello{}, [&](const answer& got) { asked = got.asked; });
    test.post([&](lanes& all) { all.ask(hello, lease_clock::now() + patience); });
    test.io->run_for(50ms);
    const auto connects = lease_clock::now();
    slow.silence(false);
    run_until(*test.io, [&] { return asked.has_value(); });
    BOOST_TEST((asked >= connects));
}

BOOST_AUTO_TEST_CASE(what_is_asked_at_once_shares_the_lanes_and_waits_for_them)
{
    scene test(shared_mongodb(), 3);
    std::vector<noted_ptr> asked;
    for (int n = 0; n < 30; ++n)
        asked.push_back(test.ask(ping));
    std::size_t most_open = 0;
    std::size_t most_waiting = 0;
    for (const auto& each : asked) {
        run_until(*test.io, [&] {
            most_open = std::max(most_open, test.all().open());
            most_waiting = std::max(most_waiting, test.all().waiting());
            return each->done();
        });
        BOOST_TEST(each->got().what == kind::done, each->got().why);
    }
    BOOST_TEST(most_open == 3u);
    BOOST_TEST(most_waiting == 27u);
    BOOST_TEST(test.all().under_way() == 0u);
}

BOOST_AUTO_TEST_CASE(they_wait_in_the_order_in_which_they_came)
{
    scene test(shared_mongodb(), 1);
    std::string order;
    std::vector<noted_ptr> asked;
    for (char name = 'a'; name <= 'f'; ++name)
        asked.push_back(test.ask(ping, patience, [&order, name] { order += name; }));
    static_cast<void>(test.wait_for(asked.back()));
    BOOST_TEST(order == "abcdef");
}

BOOST_AUTO_TEST_CASE(what_waits_can_be_withdrawn)
{
    scene test(shared_mongodb(), 1);
    const auto first = test.ask(ping);
    const auto second = test.ask(count_up);
    const auto third = test.ask(ping);
    test.post([&](lanes& all) {
        BOOST_TEST(!all.withdraw(*first));
        BOOST_TEST(all.withdraw(*second));
        BOOST_TEST(!all.withdraw(*second));
    });
    BOOST_TEST(test.wait_for(third).what == kind::done);
    BOOST_TEST(!second->done());
}

BOOST_AUTO_TEST_CASE(a_command_that_is_refused_leaves_its_lane)
{
    scene test(shared_mongodb(), 1);
    const auto& got = test.say(R"({"noSuchCommand": 1})");
    BOOST_TEST(got.what == kind::refused);
    BOOST_TEST(got.code == 59);
    BOOST_TEST(got.why.find("noSuchCommand") != std::string::npos, got.why);
    BOOST_TEST(test.all().open() == 1u);
    BOOST_TEST(test.say(ping).what == kind::done);
}

BOOST_AUTO_TEST_CASE(a_lane_whose_connection_has_ended_while_it_was_free_is_replaced)
{
    relay link(shared_mongodb());
    scene test(link.port(), 3);
    open_lanes(test, 3);
    BOOST_TEST(test.all().open() == 3u);
    link.refuse(true);
    {
        // When the relay turns another away, it has let go of these.
        scene other(link.port());
        BOOST_TEST(other.say(ping).what == kind::unsent);
    }
    link.refuse(false);
    const auto& got = test.say(ping);
    BOOST_TEST(got.what == kind::done, got.why);
    BOOST_TEST(test.all().open() == 1u);
}

BOOST_AUTO_TEST_CASE(lanes_that_nobody_uses_are_closed)
{
    relay link(shared_mongodb());
    scene test(link.port(), 3);
    open_lanes(test, 3);
    link.silence(true);
    const auto under_way = test.ask(ping);
    run_until(*test.io, [&] { return test.all().under_way() == 1; });
    test.post([](lanes& all) {
        all.close_free();
        BOOST_TEST(all.open() == 1u);
        BOOST_TEST(all.under_way() == 1u);
    });
    link.silence(false);
    BOOST_TEST(test.wait_for(under_way).what == kind::done);
    // It is a free one now.
    test.post([](lanes& all) { all.close_free(); });
    run_until(*test.io, [&] { return test.all().open() == 0; });
    // Nothing is left to run, and the next is made anew.
    test.io->restart();
    test.io->run_for(patience);
    BOOST_TEST(test.io->stopped());
    test.io->restart();
    BOOST_TEST(test.say(ping).what == kind::done);
}

BOOST_AUTO_TEST_CASE(a_large_document_passes_in_both_directions)
{
    scene test(shared_mongodb(), 1);
    const std::string text(1'000'000, 'x');
    const auto& got = test.say(R"({"findAndModify": "lanes", "query": {"_id": "large"}, "update": {"t": ")" + text +
                               R"("}, "upsert": true, "new": true})");
    BOOST_TEST(got.what == kind::done, got.why);
    BOOST_TEST(got.reply.to_json().size() > text.size());
}

BOOST_AUTO_TEST_CASE(no_thread_is_started)
{
    // A sanitizer may have one.
    const auto before = threads_of_this_process();
    scene test(shared_mongodb());
    BOOST_TEST(test.say(ping).what == kind::done);
    BOOST_TEST(threads_of_this_process() == before);
}

BOOST_AUTO_TEST_CASE(where_nobody_listens_nothing_is_sent)
{
    scene test(free_port());
    const auto& got = test.say(ping);
    BOOST_TEST(got.what == kind::unsent);
    BOOST_TEST(got.cause == asio::error::connection_refused);
    BOOST_TEST(got.spoils);
    BOOST_TEST(test.all().open() == 0u);
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_is_given_up_at_the_deadline)
{
    relay link(shared_mongodb());
    link.silence(true);
    scene test(link.port());
    const auto asked = test.ask(ping, 200ms);
    // Without a spin, though the driver looks again and again.
    const auto longest = bench::longest_handler(*test.io, [&] { return !asked->done(); });
    BOOST_TEST((longest.cpu < 100ms), "a handler took " << longest.cpu.count() << " ns of CPU");
    BOOST_TEST(asked->got().what == kind::unsent);
    BOOST_TEST(asked->got().cause == asio::error::timed_out);
    link.silence(false);
    BOOST_TEST(test.say(ping).what == kind::done);
}

BOOST_AUTO_TEST_CASE(a_command_whose_reply_is_lost_has_an_unknown_outcome)
{
    relay link(shared_mongodb());
    scene test(link.port(), 1);
    BOOST_TEST(test.say(R"({"delete": "lanes", "deletes": [{"q": {"_id": "n"}, "limit": 1}]})").what == kind::done);
    link.cut_at_bytes("findAndModify", loss::reply);
    const auto& got = test.say(count_up);
    BOOST_TEST(got.what == kind::unknown);
    BOOST_TEST(got.cause == asio::error::eof);
    BOOST_TEST(got.spoils);
    BOOST_TEST(test.all().open() == 0u);
    // And it has happened.
    const auto& again = test.say(count_up);
    BOOST_TEST(again.what == kind::done, again.why);
    BOOST_TEST(again.reply.to_json().find("\"n\" : 2") != std::string::npos, again.reply.to_json());
}

BOOST_AUTO_TEST_CASE(a_command_that_is_lost_has_an_unknown_outcome)
{
    relay link(shared_mongodb());
    scene test(link.port(), 1);
    BOOST_TEST(test.say(R"({"delete": "lanes", "deletes": [{"q": {"_id": "n"}, "limit": 1}]})").what == kind::done);
    link.cut_at_bytes("findAndModify", loss::request);
    BOOST_TEST(test.say(count_up).what == kind::unknown);
    BOOST_TEST(test.say(count_up).reply.to_json().find("\"n\" : 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_link_that_falls_silent_is_given_up_at_the_deadline)
{
    relay link(shared_mongodb());
    scene test(link.port(), 1);
    BOOST_TEST(test.say(ping).what == kind::done);
    link.silence(true);
    const auto begun = lease_clock::now();
    const auto asked = test.ask(ping, 200ms);
    // Without a spin.
    const auto longest = bench::longest_handler(*test.io, [&] { return !asked->done(); });
    BOOST_TEST(asked->got().what == kind::unknown);
    // And not by what is left of the two seconds in which it had to be connected.
    BOOST_TEST((lease_clock::now() - begun < 1500ms));
    BOOST_TEST((longest.cpu < 100ms), "a handler took " << longest.cpu.count() << " ns of CPU");
    link.silence(false);
    BOOST_TEST(test.say(ping).what == kind::done);
}

BOOST_AUTO_TEST_CASE(the_driver_makes_no_second_connection_which_nobody_would_have_logged_in)
{
    class persistent final : public task
    {
    public:
        void perform(::_mongoc_client_t& driver) noexcept override
        {
            for (const auto* const each : {ping, count_up, ping})
                got.push_back(mongo::detail::ask(driver, "colock_test", document::from_json(each)).what);
        }
        void fail(answer) noexcept override {}
        void blame(const error_code&, bool) override {}
        [[nodiscard]] bool spoils() const noexcept override { return true; }
        void performed() override { done = true; }

        std::vector<kind> got;
        bool done = false;
    };
    relay link(shared_mongodb());
    scene test(link.port());
    link.cut_at_bytes("findAndModify", loss::reply);
    const auto asked = std::make_shared<persistent>();
    test.post([&](lanes& all) { all.ask(asked, lease_clock::now() + patience); });
    run_until(*test.io, [&] { return asked->done; });
    BOOST_TEST((asked->got == std::vector{kind::done, kind::unknown, kind::unsent}));
}

BOOST_AUTO_TEST_CASE(what_is_under_way_when_all_are_closed_ends)
{
    relay link(shared_mongodb());
    scene test(link.port(), 2);
    BOOST_TEST(test.say(ping).what == kind::done);
    link.silence(true);
    const auto first = test.ask(ping);
    const auto second = test.ask(ping);
    run_until(*test.io, [&] { return test.all().under_way() == 2; });
    test.post([](lanes& all) { all.close_all(); });
    BOOST_TEST(test.wait_for(first).what == kind::unknown);
    BOOST_TEST(first->got().cause == asio::error::operation_aborted);
    // That lane was being connected.
    BOOST_TEST(test.wait_for(second).what == kind::unsent);
    // Nothing is left to run.
    test.io->restart();
    test.io->run_for(patience);
    BOOST_TEST(test.io->stopped());
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_ends_what_is_under_way)
{
    relay link(shared_mongodb());
    scene test(link.port(), 2);
    BOOST_TEST(test.say(ping).what == kind::done);
    link.silence(true);
    const auto first = test.ask(ping);
    const auto second = test.ask(ping);
    const auto third = test.ask(ping);
    run_until(*test.io, [&] { return test.all().under_way() == 2 && test.all().waiting() == 1; });
    test.io.reset();
    BOOST_TEST(!first->done());
    BOOST_TEST(!second->done());
    BOOST_TEST(!third->done());
}

BOOST_AUTO_TEST_CASE(a_server_that_dies_and_returns_is_found_again)
{
    mongodb_server server;
    scene test(server.port(), 2);
    BOOST_TEST(test.say(ping).what == kind::done);
    server.kill();
    BOOST_TEST(test.say(ping).what != kind::done);
    BOOST_TEST(test.say(ping).what == kind::unsent);
    server.start();
    BOOST_TEST(test.say(ping).what == kind::done);
}

BOOST_AUTO_TEST_CASE(a_server_that_stands_still_is_given_up_at_the_deadline)
{
    mongodb_server server;
    scene test(server.port(), 1);
    BOOST_TEST(test.say(ping).what == kind::done);
    server.pause();
    BOOST_TEST(test.say(ping, 200ms).what == kind::unknown);
    server.resume();
    BOOST_TEST(test.say(ping).what == kind::done);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
