// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Closes of a session: its nodes, the requests before the close, and lost answers.
#include "fixture.hpp"
#include "support/handler_time.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(zookeeper_session_closes)

BOOST_AUTO_TEST_CASE(closed_session_leaves_no_nodes)
{
    client one(shared_zookeeper());
    one.connect();
    one.make("closed", node_kind::ephemeral);
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(!other.is_gone("closed"));
    BOOST_TEST(one.close(5s));
    BOOST_TEST(other.is_gone("closed"));
    BOOST_TEST(!one.zk_session->connected());
}

BOOST_AUTO_TEST_CASE(requests_before_a_close_are_sent_first)
{
    client one(shared_zookeeper());
    one.connect();
    int completed = 0;
    for (int i = 0; i < 2000; ++i)
        one.zk_session->get_requests().write(
            one.path(".clock"), std::string(5000, 'x'), [&](const reply&) { ++completed; });
    one.zk_session->get_requests().create(
        one.path("last"), "", node_kind::persistent, [&](const reply&) { ++completed; });
    BOOST_TEST(one.close(50s));
    BOOST_TEST(completed == 2001);
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(!other.is_gone("last"));
    BOOST_TEST(other.remove("last").ok());
    other.zk_session->get_requests().write(other.path(".clock"), "", reply_handler());
}

BOOST_AUTO_TEST_CASE(a_close_that_is_not_answered_ends_at_its_deadline_and_blocks_nothing)
{
    check_not_blocking([] {
        faulty_proxy link(shared_zookeeper());
        client one(link.port());
        one.connect();
        one.make("unclosed", node_kind::ephemeral);
        link.silence(true);
        bool unanswered = false;
        one.zk_session->get_requests().create(one.path("late"), "", node_kind::ephemeral,
            [&](const reply& got) { unanswered = got.outcome == status::unanswered; });
        std::optional<bool> proven;
        const auto begun = std::chrono::steady_clock::now();
        one.zk_session->close(300ms, [&](bool got) { proven = got; });
        const auto longest = longest_handler(*one.io, [&] { return proven.has_value(); });
        BOOST_TEST(!*proven);
        BOOST_TEST(unanswered);
        BOOST_TEST((std::chrono::steady_clock::now() - begun >= 300ms));
        return longest;
    });
}

BOOST_AUTO_TEST_CASE(a_close_whose_answer_is_lost_is_not_proven)
{
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    // The xid of the closing request.
    link.cut_at_bytes("\x7f\xff\xff\xfe", loss::reply);
    BOOST_TEST(!one.close(5s));
    BOOST_TEST(link.cuts() == 1);
}

BOOST_AUTO_TEST_CASE(close_without_a_session_ends_at_once)
{
    client one(free_port());
    one.until([&] { return !one.events->unreachable.empty(); });
    BOOST_TEST(one.close(10s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
