// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/sockets.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace colock::testing {
namespace {

/// A client of the shared server, with an empty folder of its own.
struct connected : client
{
    connected() : client(shared_zookeeper())
    {
        connect();
        BOOST_TEST(make("t").ok());
    }
    ~connected()
    {
        for (const auto& each : children("t").names())
            remove("t/" + each);
        remove("t");
    }

    static std::string folder(std::size_t number) { return "t/f" + std::to_string(number); }
    reply enter(std::string_view folder)
    {
        return finish([&](reply_handler done) {
            zk_session->get_requests().enter(path(folder), "n-", "data", batching::forbidden, std::move(done));
        });
    }
    /// Enters these folders in one event-loop iteration.
    std::vector<reply> enter_all(const std::vector<std::size_t>& folders, batching with = batching::allowed)
    {
        std::vector<reply> all;
        for (const auto each : folders)
            zk_session->get_requests().enter(
                path(folder(each)), "n-", "data", with, [&](reply got) { all.push_back(std::move(got)); });
        until([&] { return all.size() == folders.size(); });
        return all;
    }
};

change creation(const client& by, std::string_view name)
{
    return {.type = change::kind::create, .path = by.path(name), .lifetime = node_kind::ephemeral_sequential};
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_requests)

BOOST_FIXTURE_TEST_CASE(a_node_is_made_read_and_removed, connected)
{
    const auto made = make("t/n-", node_kind::ephemeral_sequential);
    BOOST_TEST(made.ok());
    BOOST_TEST(made.text == path("t/n-0000000000"));
    BOOST_TEST(made.stat.ephemeral_owner == zk_session->life().id());
    BOOST_TEST(made.stat.created_in > 0);
    BOOST_TEST((make("t/n-0000000000").outcome == status::node_exists));
    const auto found = read("t/n-0000000000");
    BOOST_TEST(found.text == "data");
    BOOST_TEST(found.stat.created_in == made.stat.created_in);
    BOOST_TEST((remove("t").outcome == status::not_empty));
    BOOST_TEST(remove("t/n-0000000000").ok());
    BOOST_TEST((remove("t/n-0000000000").outcome == status::no_node));
}

BOOST_FIXTURE_TEST_CASE(request_takes_two_handlers, connected)
{
    constexpr int requests = 50;
    int handlers = 0;
    for (int i = 0; i < requests; ++i) {
        std::optional<reply> answer;
        zk_session->get_requests().exists(path("t"), [&](reply got) { answer = std::move(got); });
        for (io->restart(); !answer.has_value(); ++handlers)
            io->run_one();
    }
    // Some of the handlers belong to heartbeats.
    BOOST_TEST(handlers >= 2 * requests);
    BOOST_TEST(handlers < 2 * requests + requests / 2);
}

BOOST_FIXTURE_TEST_CASE(a_container_is_made, connected)
{
    BOOST_TEST(make("t/c", node_kind::container).ok());
    BOOST_TEST(make("t/c/n-", node_kind::ephemeral_sequential).ok());
    BOOST_TEST(remove("t/c/n-0000000000").ok());
}

BOOST_FIXTURE_TEST_CASE(requests_of_one_iteration_are_answered_in_order, connected)
{
    std::string order;
    std::vector<std::string> names;
    zk_session->get_requests().create(
        path("t/a"), "", node_kind::ephemeral, [&](const reply& got) { order += got.ok() ? 'c' : '?'; });
    zk_session->get_requests().children(path("t"), [&](const reply& got) {
        order += 'l';
        names = got.names();
    });
    zk_session->get_requests().remove(path("t/a"), [&](const reply& got) { order += got.ok() ? 'd' : '?'; });
    until([&] { return order.size() == 3; });
    BOOST_TEST(order == "cld");
    BOOST_TEST((names == std::vector<std::string>{"a"}));
}

BOOST_FIXTURE_TEST_CASE(shared_list_is_read_after_all_that_was_asked_before_it, connected)
{
    std::vector<reply> lists;
    const auto note = [&](const reply& got) { lists.push_back(got); };
    zk_session->get_requests().shared_children(path("t"), note);
    zk_session->get_requests().create(path("t/a"), "", node_kind::ephemeral, reply_handler());
    zk_session->get_requests().shared_children(path("t"), note);
    zk_session->get_requests().create(path("t/b"), "", node_kind::ephemeral, reply_handler());
    until([&] { return lists.size() == 2; });
    BOOST_TEST(lists[0].names().size() == 2U);
    // Both callers share one request.
    BOOST_TEST(lists[0].children == lists[1].children);
}

BOOST_FIXTURE_TEST_CASE(shared_list_that_is_asked_for_while_another_is_in_flight_is_the_next, connected)
{
    std::vector<reply> lists;
    const auto note = [&](const reply& got) { lists.push_back(got); };
    zk_session->get_requests().shared_children(path("t"), note);
    // The next requests are made in a later event-loop iteration, in which the first list is in flight.
    asio::post(*io, [&] {
        zk_session->get_requests().create(path("t/a"), "", node_kind::ephemeral, reply_handler());
        zk_session->get_requests().shared_children(path("t"), note);
        zk_session->get_requests().shared_children(path("t"), note);
    });
    until([&] { return lists.size() == 3; });
    BOOST_TEST(lists[0].names().empty());
    BOOST_TEST(lists[1].names().size() == 1U);
    BOOST_TEST(lists[1].children == lists[2].children);
}

BOOST_FIXTURE_TEST_CASE(shared_lists_end_with_their_connection, connected)
{
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    link.silence(true);
    std::vector<status> ends;
    const auto note = [&](const reply& got) { ends.push_back(got.outcome); };
    one.zk_session->get_requests().shared_children(one.path("t"), note);
    one.io->restart();
    one.io->run_for(50ms);
    one.zk_session->get_requests().shared_children(one.path("t"), note);
    link.refuse(true);
    link.silence(false);
    one.until([&] { return ends.size() == 2; });
    BOOST_TEST((ends[0] == status::unanswered || ends[1] == status::unanswered));
    BOOST_TEST((ends[0] == status::unsent || ends[1] == status::unsent));
    link.refuse(false);
    one.connect();
}

/// The replies that were lost with a connection are delivered in many handlers. Meanwhile the session connects again,
/// and sends nothing but the requests of its verification.
BOOST_FIXTURE_TEST_CASE(shared_list_that_waits_when_its_connection_ends_is_not_sent_on_the_next, connected)
{
    constexpr int many = 2000;
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    auto& requests = one.zk_session->get_requests();
    const auto& life = one.zk_session->life();
    link.silence(true);
    for (int i = 0; i < many; ++i) {
        requests.exists(one.path("t"), [&](const reply&) {
            // The handlers take so long that the session is connected before the last one.
            if (!life.connected())
                std::this_thread::sleep_for(1ms);
        });
    }
    std::optional<status> first;
    std::optional<status> second;
    bool was_unverified = false;
    requests.shared_children(one.path("t"), [&](const reply& got) {
        first = got.outcome;
        was_unverified = life.connected() && !one.zk_session->connected();
    });
    one.until([&] { return requests.empty(); });
    requests.shared_children(one.path("t"), [&](const reply& got) { second = got.outcome; });
    link.refuse(true);
    link.silence(false);
    // The verification ends when the test lets it.
    link.cut_at_bytes("/.s/", loss::delayed_reply);
    link.refuse(false);
    one.until([&] { return first.has_value(); });
    BOOST_TEST(was_unverified);
    link.deliver_replies();
    one.until([&] { return second.has_value(); });
    BOOST_TEST((first == status::unanswered));
    BOOST_TEST((second == status::unsent));
    one.connect();
    // Nobody has run the client of the fixture meanwhile, so its connection may have ended.
    connect();
}

/// One handler sends at most 256 requests, and these are more.
BOOST_FIXTURE_TEST_CASE(thousands_of_requests_of_one_iteration_are_answered_in_order, connected)
{
    constexpr std::size_t many = 2000;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < many; ++i) {
        zk_session->get_requests().exists(path("t"), [&, i](const reply& got) {
            BOOST_TEST(got.ok());
            order.push_back(i);
        });
    }
    until([&] { return order.size() == many; });
    BOOST_TEST(std::ranges::is_sorted(order));
}

BOOST_FIXTURE_TEST_CASE(requests_are_completed_when_the_connection_ends_before_all_are_sent, connected)
{
    constexpr std::size_t many = 2000;
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    std::size_t completed = 0;
    std::size_t unsent = 0;
    for (std::size_t i = 0; i < many; ++i) {
        one.zk_session->get_requests().exists(one.path("t"), [&](const reply& got) {
            ++completed;
            unsent += got.outcome == status::unsent ? 1U : 0U;
        });
    }
    link.refuse(true);
    // Under load the end of a connection arrives late, sometimes after all of these requests would have been sent.
    std::this_thread::sleep_for(50ms);
    one.until([&] { return completed == many; });
    BOOST_TEST(one.events->suspensions == 1);
    BOOST_TEST(unsent > 0U);
    link.refuse(false);
    one.connect();
}

BOOST_FIXTURE_TEST_CASE(no_completion_is_called_inside_the_call_that_starts_its_request, connected)
{
    bool completed = false;
    zk_session->get_requests().exists(path("t"), [&](const reply&) { completed = true; });
    BOOST_TEST(!completed);
    until([&] { return completed; });
    // The completion of a request that is not sent is not called inside of the call, either.
    completed = false;
    client unconnected(free_port());
    unconnected.zk_session->get_requests().exists(
        path("t"), [&](const reply& got) { completed = got.outcome == status::unsent; });
    BOOST_TEST(!completed);
    unconnected.until([&] { return completed; });
}

BOOST_FIXTURE_TEST_CASE(change_of_a_watched_node_is_reported_once, connected)
{
    make("t/a");
    BOOST_TEST(read_and_watch("t/a").ok());
    BOOST_TEST(read_and_watch("t/a").ok());
    BOOST_TEST(remove("t/a").ok());
    BOOST_TEST((events->changed == std::vector{path("t/a")}));
    BOOST_TEST((read_and_watch("t/a").outcome == status::no_node));
    make("t/a");
    BOOST_TEST(events->changed.size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(change_of_watched_children_is_reported, connected)
{
    BOOST_TEST(finish([&](reply_handler done) {
        zk_session->get_requests().children_and_watch(path("t"), std::move(done));
    }).ok());
    make("t/a");
    BOOST_TEST((events->changed == std::vector{path("t")}));
}

BOOST_FIXTURE_TEST_CASE(transaction_reports_the_result_of_each_member, connected)
{
    make("t/old");
    const auto all = multi({creation(*this, "t/a-"), creation(*this, "t/b-"),
        {.type = change::kind::remove, .path = path("t/old")}, {.type = change::kind::write, .path = path(".clock")}});
    BOOST_TEST(all.ok());
    BOOST_TEST_REQUIRE(all.members.size() == 4U);
    BOOST_TEST(all.members[0].text == path("t/a-0000000001"));
    BOOST_TEST(all.members[1].text == path("t/b-0000000002"));
    // All nodes are created in one transaction, and only the reply to the write contains its number.
    BOOST_TEST(read("t/a-0000000001").stat.created_in == all.members[3].stat.modified_in);
    BOOST_TEST(read("t/b-0000000002").stat.created_in == all.members[3].stat.modified_in);
    BOOST_TEST(is_gone("t/old"));
}

BOOST_FIXTURE_TEST_CASE(transaction_with_a_failed_member_has_no_effect, connected)
{
    const auto all = multi(
        {creation(*this, "t/a-"), {.type = change::kind::remove, .path = path("t/none")}, creation(*this, "t/b-")});
    BOOST_TEST((all.outcome == status::no_node));
    BOOST_TEST_REQUIRE(all.members.size() == 3U);
    BOOST_TEST((all.members[1].outcome == status::no_node));
    BOOST_TEST(children("t").names().empty());
}

BOOST_FIXTURE_TEST_CASE(enter_reports_the_number_of_nodes, connected)
{
    make("t/a");
    const auto one = enter("t/a"), two = enter("t/a");
    BOOST_TEST(one.ok());
    BOOST_TEST(one.text == path("t/a/n-0000000000"));
    BOOST_TEST(one.child_count == 1);
    BOOST_TEST(one.stat.ephemeral_owner == zk_session->life().id());
    BOOST_TEST(one.stat.created_in == read("t/a/n-0000000000").stat.created_in);
    BOOST_TEST(two.child_count == 2);
    BOOST_TEST((enter("t/none").outcome == status::no_node));
    for (const auto& each : {one, two})
        BOOST_TEST(finish([&](reply_handler done) {
            zk_session->get_requests().leave(each.text, batching::forbidden, std::move(done));
        }).ok());
    BOOST_TEST(children("t/a").names().empty());
    remove("t/a");
}

BOOST_FIXTURE_TEST_CASE(batched_requests_share_few_transactions_and_complete_one_by_one, connected)
{
    constexpr std::size_t folders = 20;
    for (std::size_t i = 0; i < folders; ++i)
        make(folder(i));
    const auto made = enter_all({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
    std::set<std::int64_t> transactions;
    for (const auto& each : made) {
        BOOST_TEST(each.ok());
        BOOST_TEST(each.child_count == 1);
        BOOST_TEST(each.stat.created_in == finish([&](reply_handler done) {
            zk_session->get_requests().exists(each.text, std::move(done));
        }).stat.created_in);
        transactions.insert(each.stat.created_in);
    }
    BOOST_TEST(transactions.size() == 3U);
    // Fencing tokens are made of these numbers, so two nodes in one folder never have the same number.
    const auto in_pairs = enter_all({0, 0, 1, 1});
    BOOST_TEST(in_pairs[0].stat.created_in < in_pairs[1].stat.created_in);
    BOOST_TEST(in_pairs[2].stat.created_in < in_pairs[3].stat.created_in);

    // A read that is requested in the same event-loop iteration sees the removals.
    std::size_t left = 0;
    for (const auto& all : {made, in_pairs}) {
        for (const auto& each : all)
            zk_session->get_requests().leave(
                each.text, batching::allowed, [&](const reply& got) { left += got.ok() ? 1U : 0U; });
    }
    BOOST_TEST(children(folder(0)).names().empty());
    BOOST_TEST(left == made.size() + in_pairs.size());
    for (std::size_t i = 0; i < folders; ++i)
        BOOST_TEST(remove(folder(i)).ok());
}

BOOST_FIXTURE_TEST_CASE(failed_request_gets_its_error_and_the_rest_of_its_batch_is_aborted, connected)
{
    make(folder(0));
    make(folder(1));
    const auto all = enter_all({0, 7, 1});
    BOOST_TEST((all[0].outcome == status::batch_aborted));
    BOOST_TEST((all[1].outcome == status::no_node));
    BOOST_TEST((all[2].outcome == status::batch_aborted));
    BOOST_TEST(children(folder(0)).names().empty());
    // Requests that may not be batched are sent alone.
    const auto unconnected = enter_all({0, 7, 1}, batching::forbidden);
    BOOST_TEST(unconnected[0].ok());
    BOOST_TEST((unconnected[1].outcome == status::no_node));
    BOOST_TEST(unconnected[2].ok());
    for (const auto i : {0, 2})
        zk_session->get_requests().leave(
            unconnected[static_cast<std::size_t>(i)].text, batching::allowed, reply_handler());
    BOOST_TEST(remove(folder(0)).ok());
    BOOST_TEST(remove(folder(1)).ok());
}

BOOST_FIXTURE_TEST_CASE(request_that_would_end_the_connection_is_not_sent, connected)
{
    const std::string large(2'000'000, 'x');
    const auto made = finish([&](reply_handler done) {
        zk_session->get_requests().create(path("t/a"), large, node_kind::persistent, std::move(done));
    });
    BOOST_TEST((made.outcome == status::refused));
    BOOST_TEST((finish([&](reply_handler done) {
        zk_session->get_requests().write(path("t"), large, std::move(done));
    }).outcome == status::refused));
    BOOST_TEST((multi({{.type = change::kind::write, .path = path("t"), .data = large}}).outcome == status::refused));
    BOOST_TEST((multi({creation(*this, "t/a-"), {.type = change::kind::remove, .path = "no path"}}).outcome ==
                status::refused));
    BOOST_TEST((multi({}).outcome == status::refused));
    BOOST_TEST((finish([&](reply_handler done) {
        zk_session->get_requests().remove("no path", std::move(done));
    }).outcome == status::unsent));
    BOOST_TEST(exists("t").ok());
    BOOST_TEST(events->suspensions == 0);
}

BOOST_FIXTURE_TEST_CASE(thousands_of_requests_at_once_are_all_answered, connected)
{
    int answered = 0;
    for (int i = 0; i < 5000; ++i)
        zk_session->get_requests().write(
            path("t"), std::string(500, 'x'), [&](const reply& got) { answered += got.ok() ? 1 : 0; });
    until([&] { return answered == 5000; });
    BOOST_TEST(events->suspensions == 0);
}

BOOST_AUTO_TEST_CASE(nodes_of_a_user_are_inaccessible_to_others)
{
    client owner(shared_zookeeper(), 6s, {.user = "me", .password = "secret", .chroot = client::chroot + "-mine"});
    owner.connect();
    BOOST_TEST(owner.make("t").ok());
    client other(shared_zookeeper(), 6s, {.chroot = client::chroot + "-mine"});
    other.until([&] { return other.events->denied > 0; });
    BOOST_TEST((other.read("t").outcome == status::access_denied));
    BOOST_TEST((other.make("u").outcome == status::access_denied));
    BOOST_TEST(owner.remove("t").ok());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
