// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "one_server.hpp"
#include "support/driver.hpp"
#include "zookeeper/layout/key_encoding.hpp"
#include "zookeeper/layout/node_names.hpp"

#include <colock/connect.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Folder of the key that these tests use, below the root.
const std::string folder = bucket_of("k") + "/k";

/// A server with an additional client that inspects what lockers have left.
struct inspected_server : one_server
{
    inspected_server() : by(server->port(), 6s, {.chroot = chroot()}) { by.connect(); }

    void acquire_repeatedly(const locker& all, int times)
    {
        for (int i = 0; i < times; ++i)
            run(run(all.acquire("k")).release(on_failure::raise));
    }
    /// Makes the server believe that `count` nodes have been created in the folder.
    void use_numbers_up(std::int64_t count)
    {
        by.make(bucket_of("k"));
        BOOST_TEST(by.make(folder).ok());
        // The server writes a snapshot when it starts.
        server->kill();
        server->start();
        server->kill();
        const auto command = "/usr/bin/python3 '" COLOCK_USE_NUMBERS_UP "' '" + server->data().string() + "' '" +
                             by.path(folder) + "' " + std::to_string(count);
        BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
        server->start();
        by.until([&] { return by.zk_session->connected(); });
    }
    /// Returns the sequence number of the only node.
    std::string number() const
    {
        const auto all = nodes();
        BOOST_TEST_REQUIRE(all.size() == 1U);
        return all[0].substr(all[0].rfind('-') + 1);
    }

    client by;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_lockers, one_server)

BOOST_AUTO_TEST_CASE(url_options_take_effect)
{
    const auto url = zookeeper_url(server->port()) + chroot() +
                     "?layout=curator_mutex&session_timeout=4s&server_tick=500ms&idle_timeout=10m";
    auto held = run(add(colock::make_adapter(io.get_executor(), url, {zookeeper::by_url})).acquire("k", {.ttl = 1h}));
    BOOST_TEST((held.expires_at() < lease_clock::now() + 4s));
    const auto found = nodes();
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found.front().starts_with(chroot() + "/k/_c_"), found.front());
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(lost_lock_does_not_block_others_when_its_session_is_resumed)
{
    const driver by(io, make_adapter(options(4s)));
    const auto lost = driver::exclusive("k"), next = driver::exclusive("k");
    by.grant(lost);
    server->kill();
    until([&] { return lost->lease().has_ended(lease_clock::now()); });
    // The server does not count the time during which it was down, so the session still exists.
    server->start();
    by.grant(next);
    BOOST_TEST(nodes().size() == 1U);
    by.check_not_held(lost);
    by.release_held(next);
}

/// The client removes at most 256 nodes in one event-loop iteration, and these are more.
BOOST_AUTO_TEST_CASE(all_lost_nodes_are_removed_when_their_session_is_resumed)
{
    const driver by(io, make_adapter(options(4s)));
    std::vector<plain_claim_ptr> lost;
    for (int i = 0; i < 800; ++i)
        by.grant(lost.emplace_back(driver::exclusive("k" + std::to_string(i))));
    server->kill();
    until([&] { return lost.back()->lease().has_ended(lease_clock::now()); });
    server->start();
    until([&] { return sessions_of(server->port(), chroot()).empty(); });
    by.check_not_held(lost.back());
}

/// A pair is an acquire and a release. Two handlers of the caller send the requests, two read the replies, and one
/// belongs to the timer of the lease. The client's own timer adds a handler to some pairs, on a loaded machine to most.
BOOST_FIXTURE_TEST_CASE(a_pair_takes_five_handlers, one_server)
{
    constexpr std::size_t pairs = 51;
    const auto one = add();
    std::size_t done = 0;
    const auto acquire_repeatedly = [](locker by, std::size_t& counted) -> asio::awaitable<void> {
        for (std::size_t i = 0; i < pairs; ++i, ++counted) {
            auto held = co_await by.acquire("k");
            co_await held.release(on_failure::raise);
        }
    };
    run(acquire_repeatedly(one, done));
    done = 0;
    const auto turns = start(io, acquire_repeatedly(one, done));
    std::vector<int> handlers(pairs + 1);
    for (io.restart(); !turns.done(); ++handlers[done])
        io.run_one();
    // The first count begins in the middle of a pair, and the last one is not of a pair.
    handlers.pop_back();
    handlers.erase(handlers.begin());
    BOOST_TEST(std::ranges::min(handlers) == 5);
    check_end();
}

BOOST_FIXTURE_TEST_CASE(claim_is_seen_after_many_uncontended_acquires_of_another_locker, inspected_server)
{
    auto one = add();
    const auto two = add();
    acquire_repeatedly(one, 40);
    auto held = run(two.acquire("k"));
    BOOST_TEST(!run(one.try_acquire("k")).has_value());
    BOOST_TEST(nodes().size() == 1U);
    run(held.release(on_failure::raise));

    acquire_repeatedly(one, 20);
    held = run(two.acquire("k"));
    auto waiter = queue(one);
    BOOST_TEST(!waiter.done());
    run(held.release(on_failure::raise));
    run(waiter.get(io).release(on_failure::raise));

    // A waiter of the same locker waits as well.
    acquire_repeatedly(one, 20);
    held = run(one.acquire("k"));
    waiter = queue(one);
    BOOST_TEST(!waiter.done());
    run(held.release(on_failure::raise));
    run(waiter.get(io).release(on_failure::raise));

    // The fences also grow if another locker has held the lock meanwhile.
    acquire_repeatedly(two, 1);
    const auto fence = run(one.acquire("k")).fence();
    until([&] { return nodes().empty(); });
    BOOST_TEST(run(one.acquire("k")).fence() > fence);
    check_end();
}

/// The holder gets the number that the node of `one` would have had in the old folder.
BOOST_FIXTURE_TEST_CASE(holder_in_a_recreated_folder_is_seen_under_any_number, inspected_server)
{
    const auto one = add();
    constexpr int turns = 40;
    acquire_repeatedly(one, turns);
    until([&] { return nodes().empty(); });
    BOOST_TEST(by.remove(folder).ok());
    BOOST_TEST(by.make(folder).ok());
    const auto prefix = folder + '/' + node_prefix(layout::standard, std::string(32, 'a'), role::exclusive);
    reply last;
    for (int i = 0; i < turns; ++i) {
        if (last.ok())
            by.zk_session->get_requests().leave(last.text, batching::forbidden, reply_handler());
        last = by.make(prefix, node_kind::ephemeral_sequential);
    }
    BOOST_TEST(last.text == by.path(prefix + "0000000039"));
    BOOST_TEST(!run(one.try_acquire("k")).has_value());
    BOOST_TEST(nodes().size() == 1U);
    BOOST_TEST(
        by.finish([&](reply_handler done) {
              by.zk_session->get_requests().leave(last.text, batching::forbidden, std::move(done));
          }).ok());
    acquire_repeatedly(one, 1);
    check_end();
}

/// After its highest number, the server would give the same number to all later nodes.
BOOST_FIXTURE_TEST_CASE(highest_sequence_number_of_a_folder_is_not_used, inspected_server)
{
    constexpr std::int64_t highest = 2'147'483'647;
    use_numbers_up(highest - 10);
    auto& one = add();
    acquire_repeatedly(one, 9);
    auto held = run(one.acquire("k"));
    BOOST_TEST(number() == std::to_string(highest - 1));
    run(held.release(on_failure::raise));
    // No other claim is in the folder, so it is created again and counts from zero.
    auto& two = add();
    held = run(two.acquire("k"));
    BOOST_TEST(number() == "0000000000");
    for (const auto mode : {lock_mode::shared, lock_mode::exclusive})
        BOOST_TEST(!run(one.try_acquire("k", {.mode = mode})).has_value());
    run(held.release(on_failure::raise));
    acquire_repeatedly(one, 1);
    check_end();
}

BOOST_FIXTURE_TEST_CASE(waiters_with_the_highest_sequence_number_wait_for_a_new_folder, inspected_server)
{
    constexpr std::int64_t highest = 2'147'483'647;
    use_numbers_up(highest - 1);
    auto &one = add(), &two = add(), &three = add();
    auto held = run(one.acquire("k"));
    for (const auto mode : {lock_mode::shared, lock_mode::exclusive})
        BOOST_TEST(!run(two.try_acquire("k", {.mode = mode})).has_value());
    auto second = queue(two), third = queue(three);
    BOOST_TEST((!second.done() && !third.done()));
    run(held.release(on_failure::raise));
    const auto finish = [&](running<lock>& waiting) {
        try {
            auto got = waiting.get(io);
            for (const auto& each : nodes())
                BOOST_TEST(each.find("-x-00000") != std::string::npos, each);
            run(got.release(on_failure::raise));
        } catch (const error& failed) {
            BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        }
    };
    until([&] { return second.done() || third.done(); });
    const bool was_second = second.done();
    finish(was_second ? second : third);
    finish(was_second ? third : second);
    acquire_repeatedly(one, 1);
    check_end();
}

BOOST_AUTO_TEST_CASE(thousand_local_waiters_have_two_nodes)
{
    auto& one = add();
    auto held = run(one.acquire("k"));
    std::vector<running<lock>> waiting;
    for (int i = 0; i < 1000; ++i)
        waiting.push_back(start(io, one.acquire("k")));
    until([&] { return one.stats().waiting == 1000 && one.stats().busy > 0; });
    BOOST_TEST(nodes().size() == 2U);
    run(held.release());
    for (auto& each : waiting) {
        auto next = each.get(io);
        run(next.release());
    }
    check_end();
}

BOOST_AUTO_TEST_CASE(session_timeout_of_few_ticks_causes_a_warning)
{
    const auto use = [&](std::chrono::milliseconds session_timeout) {
        run(run(add(session_timeout).acquire("k")).release(on_failure::raise));
    };
    use(4s);
    BOOST_TEST(events->warnings.empty());
    use(1500ms);
    BOOST_TEST_REQUIRE(events->warnings.size() == 1U);
    BOOST_TEST(events->warned_of("1500 ms"), events->warnings.front());
    check_end();
}

BOOST_AUTO_TEST_CASE(too_large_key_is_refused_without_disturbing_others)
{
    const auto backend = make_adapter(options());
    auto held = run(add(backend).acquire("k"));
    const driver by(io, backend);
    for (const auto size : {300'000U, 2'000'000U}) {
        const auto large = driver::exclusive(std::string(size, 'k'));
        const auto outcome = by.create(large);
        BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
        BOOST_TEST((outcome.error->code == errc::invalid_key));
        BOOST_TEST((by.abandon(large).status == release_status::not_held));
        auto listed = start(io, backend->listing({.filter = {.key = large->key()}}));
        BOOST_TEST((listed.get(io).error->code == errc::invalid_key));
    }
    BOOST_TEST(run(held.is_locked()));
    BOOST_TEST(events->suspensions == 0);
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(other_users_are_denied_access)
{
    const auto with = [&](const std::string& user) -> locker& {
        return add(10s, "zookeeper://" + user + "@127.0.0.1:" + std::to_string(server->port()));
    };
    auto held = run(add(with_credentials(options(), "me", "secret")).acquire("k"));
    BOOST_TEST(!run(with("me:secret").try_acquire("k")));
    for (auto* const stranger : {&add(), &with("me:other")}) {
        for (const auto* const key : {"k", "another"}) {
            try {
                run(stranger->try_acquire(key));
                BOOST_ERROR("not refused");
            } catch (const error& refused) {
                BOOST_TEST((refused.code() == errc::access_denied), refused.what());
                const std::string_view message = refused.what();
                BOOST_TEST(message.find("the server refuses the user, or does not let it write below") != message.npos,
                    message);
                BOOST_TEST(message.find("secret") == message.npos);
            }
        }
    }
    // Each stranger is refused when it connects. The refused operations cause no other warning.
    BOOST_TEST(events->warnings.size() == 2U);
    BOOST_TEST(events->warned_of("refuses the user"));
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(access_to_a_node_of_another_user_is_denied)
{
    // Everybody may write below the folder of the sessions, which this client creates.
    auto& open = add();
    run(run(open.acquire("another")).release(on_failure::raise));
    auto held = run(add(with_credentials(options(), "me", "secret")).acquire("k"));
    try {
        run(open.try_acquire("k"));
        BOOST_ERROR("not refused");
    } catch (const error& refused) {
        BOOST_TEST((refused.code() == errc::access_denied), refused.what());
        const std::string_view message = refused.what();
        BOOST_TEST(message.find("the server denies access to the node") != message.npos, message);
    }
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(client_with_access_rights_takes_part)
{
    auto given = with_credentials(options(), "me", "secret");
    given.access = {{.permissions = zookeeper::access_right::all & ~zookeeper::access_right::admin}};
    auto held = run(add(given).acquire("k"));
    auto waiting = queue(add());
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(read_only_access_gives_neither_locks_nor_a_lasting_session)
{
    auto given = with_credentials(options(), "me", "secret");
    given.access = {{.scheme = "auth", .id = {}}, {.permissions = zookeeper::access_right::read}};
    auto held = run(add(given).acquire("k"));
    auto& reader = add();
    std::string why;
    try {
        static_cast<void>(run(reader.list()));
    } catch (const error& refused) {
        BOOST_TEST((refused.code() == errc::access_denied));
        why = refused.what();
    }
    BOOST_TEST(why.find("does not let it write") != std::string::npos, why);
    try {
        run(reader.try_acquire("another"));
        BOOST_ERROR("not refused");
    } catch (const error& refused) {
        BOOST_TEST((refused.code() == errc::access_denied), refused.what());
    }
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_FIXTURE_TEST_CASE(exceeded_quota_of_the_server_is_a_failed_attempt, inspected_server)
{
    server->kill();
    server->configure("enforceQuota=true\n");
    server->start();
    auto& one = add();
    run(run(one.acquire("k")).release(on_failure::raise));
    by.connect();
    auto& requests = by.zk_session->get_requests();
    const auto quota = "/zookeeper/quota" + chroot();
    const auto create = [&](const std::string& path, std::string_view data) {
        BOOST_TEST(
            by.finish([&](reply_handler done) {
                  requests.create(path, data, node_kind::persistent, std::move(done));
              }).ok());
    };
    create(quota, "");
    create(quota + "/zookeeper_limits", "count=1,bytes=-1=;byteHardLimit=-1;countHardLimit=1");
    create(quota + "/zookeeper_stats", "count=100,bytes=0");
    const auto is_named = [](const error& refused) {
        return refused.code() == errc::unavailable &&
               std::string_view(refused.what()).find("quota") != std::string_view::npos;
    };
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(run(one.acquire("other", {.retry = retry_policy::never()}))), error, is_named);
    auto waiting = start(io, one.acquire("other", {.retry = retry_policy::fixed(20ms)}));
    const auto attempts = one.stats().attempts;
    until([&] { return one.stats().attempts > attempts + 2; });
    BOOST_TEST(!waiting.done());
    BOOST_TEST(
        by.finish([&](reply_handler done) { requests.remove(quota + "/zookeeper_limits", std::move(done)); }).ok());
    run(waiting.get(io).release(on_failure::raise));
    check_end();
}

namespace {

/// A server on which the configuration can be changed so that it demands authentication.
struct server_with_authentication : one_server
{
    void restart(bool demands)
    {
        server->kill();
        server->configure(demands ? "enforce.auth.enabled=true\nenforce.auth.schemes=digest\n" : "");
        server->start();
    }
    void check_refused(asio::awaitable<lock> acquire, errc expected)
    {
        try {
            static_cast<void>(run(std::move(acquire)));
            BOOST_ERROR("not refused");
        } catch (const error& refused) {
            BOOST_TEST((refused.code() == expected), refused.what());
            BOOST_TEST(
                std::string_view(refused.what()).find("refuses the user") != std::string_view::npos, refused.what());
        }
    }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(user_that_was_never_accepted_is_denied_at_once, server_with_authentication)
{
    restart(true);
    auto& one = add();
    check_refused(one.acquire("k", {.retry = retry_policy::forever()}), errc::access_denied);
    check_refused(one.acquire("k", {.retry = retry_policy::never()}), errc::access_denied);
    auto& other = add(with_credentials(options(), "me", "secret"));
    run(run(other.acquire("k")).release(on_failure::raise));
    check_end();
}

BOOST_FIXTURE_TEST_CASE(refusal_of_a_user_that_was_accepted_before_is_a_failed_attempt, server_with_authentication)
{
    auto& one = add();
    run(run(one.acquire("k")).release(on_failure::raise));
    restart(true);
    until([&] { return events->suspensions > 0; });
    check_refused(one.acquire("k", {.retry = retry_policy::never()}), errc::unavailable);
    auto waiting = start(io, one.acquire("k", {.retry = retry_policy::forever()}));
    restart(false);
    run(waiting.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
