// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "one_server.hpp"
#include "support/driver.hpp"
#include "zookeeper/recipe/names.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Of the key that these tests use, below the root.
const std::string folder = bucket_of("k") + "/k";

/// Others may look at what lockers have left at the server.
struct watched_server : one_server
{
    watched_server() : by(server->port(), 6s, {.chroot = chroot()}) { by.connect(); }

    void take_turns(const locker& all, int times)
    {
        for (int i = 0; i < times; ++i)
            run(run(all.acquire("k")).release(on_failure::raise));
    }
    /// So many nodes have been made in the folder, as far as the server knows.
    void use_numbers_up(std::int64_t count)
    {
        by.make(bucket_of("k"));
        BOOST_TEST(by.make(folder).ok());
        // It writes all that it has when it starts.
        server->kill();
        server->start();
        server->kill();
        const auto command = "/usr/bin/python3 '" COLOCK_USE_NUMBERS_UP "' '" + server->data().string() + "' '" +
                             by.path(folder) + "' " + std::to_string(count);
        BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
        server->start();
        by.until([&] { return by.talk->connected(); });
    }
    /// Of the only node.
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

BOOST_AUTO_TEST_CASE(processes_are_granted_in_the_order_of_their_calls)
{
    auto held = run(add().acquire("k"));
    auto second = queue(add()), third = queue(add());
    const auto fence = held.fence();
    run(held.release());
    auto next = second.get(io);
    BOOST_TEST(next.fence() > fence);
    BOOST_TEST(!third.done());
    run(next.release());
    auto last = third.get(io);
    BOOST_TEST(last.fence() > next.fence());
    run(last.release());
    check_end();
}

BOOST_AUTO_TEST_CASE(whoever_holds_hears_that_the_session_has_expired_and_goes_on_in_another)
{
    auto& one = add();
    auto held = run(one.acquire("k"));
    auto waiting = queue(add());
    auto hears = start(io, held.lost());
    const auto sessions = sessions_of(server->port(), chroot());
    BOOST_TEST_REQUIRE(sessions.size() == 2U);
    // All of them: who waits stands in line anew.
    for (const auto each : sessions)
        end_session(server->port(), each);
    BOOST_TEST((hears.get(io) == lost_reason::session));
    BOOST_TEST(!held.held());
    auto next = waiting.get(io);
    BOOST_TEST(run(next.is_locked()));
    run(next.release(on_failure::raise));
    auto again = run(one.acquire("k"));
    run(again.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(what_was_lost_stands_in_nobodys_way_when_its_session_comes_back)
{
    const driver by(io, make_adapter(options(4s)));
    const auto lost = driver::exclusive("k"), next = driver::exclusive("k");
    by.grant(lost);
    server->kill();
    until([&] { return lost->lease().has_ended(lease_clock::now()); });
    // It does not count the time that it was away.
    server->start();
    by.grant(next);
    BOOST_TEST(nodes().size() == 1U);
    by.check_not_held(lost);
    by.give_back(next);
}

/// More than one turn removes.
BOOST_AUTO_TEST_CASE(all_that_was_lost_is_removed_when_its_session_comes_back_however_much_it_is)
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

BOOST_AUTO_TEST_CASE(who_has_been_there_before_waits_like_everybody_else)
{
    auto &one = add(), &two = add(), &three = add();
    for (auto* const each : {&one, &two, &three})
        run(run(each->acquire("k")).release(on_failure::raise));
    auto held = run(one.acquire("k"));
    auto waits = start(io, two.acquire("k"));
    until([&] { return waits.done() || two.stats().busy > 0; });
    BOOST_TEST(!waits.done());
    BOOST_TEST(!run(three.try_acquire("k")).has_value());
    BOOST_TEST(nodes().size() == 2U);
    const auto fence = held.fence();
    run(held.release());
    auto next = waits.get(io);
    BOOST_TEST(next.fence() > fence);
    run(next.release());
    check_end();
}

/// Two handlers of the caller, in which requests are sent, two that read answers, and one for the timer of the lease.
/// Some pairs contain a turn of the client's timer, too: on a loaded machine, where a pair takes long, most do.
BOOST_FIXTURE_TEST_CASE(a_pair_takes_five_handlers, one_server)
{
    constexpr std::size_t pairs = 51;
    const auto one = add();
    std::size_t done = 0;
    const auto take_turns = [](locker by, std::size_t& counted) -> asio::awaitable<void> {
        for (std::size_t i = 0; i < pairs; ++i, ++counted) {
            auto held = co_await by.acquire("k");
            co_await held.release(on_failure::raise);
        }
    };
    run(take_turns(one, done));
    done = 0;
    const auto turns = start(io, take_turns(one, done));
    std::vector<int> handlers(pairs + 1);
    for (io.restart(); !turns.done(); ++handlers[done])
        io.run_one();
    // The first one begins in the middle, and the last count is not of a pair.
    handlers.pop_back();
    handlers.erase(handlers.begin());
    BOOST_TEST(std::ranges::min(handlers) == 5);
    check_end();
}

BOOST_FIXTURE_TEST_CASE(whoever_comes_after_one_that_was_alone_time_after_time_is_seen, watched_server)
{
    auto one = add();
    const auto two = add();
    take_turns(one, 40);
    auto held = run(two.acquire("k"));
    BOOST_TEST(!run(one.try_acquire("k")).has_value());
    BOOST_TEST(nodes().size() == 1U);
    run(held.release(on_failure::raise));

    take_turns(one, 20);
    held = run(two.acquire("k"));
    auto waits = queue(one);
    BOOST_TEST(!waits.done());
    run(held.release(on_failure::raise));
    run(waits.get(io).release(on_failure::raise));

    // One of its own, too.
    take_turns(one, 20);
    held = run(one.acquire("k"));
    waits = queue(one);
    BOOST_TEST(!waits.done());
    run(held.release(on_failure::raise));
    run(waits.get(io).release(on_failure::raise));

    // Or was there meanwhile.
    take_turns(two, 1);
    const auto fence = run(one.acquire("k")).fence();
    until([&] { return nodes().empty(); });
    BOOST_TEST(run(one.acquire("k")).fence() > fence);
    check_end();
}

/// The number that ours would have had in the old one.
BOOST_FIXTURE_TEST_CASE(who_holds_in_a_folder_that_was_made_anew_is_seen_under_whatever_number, watched_server)
{
    const auto one = add();
    constexpr int turns = 40;
    take_turns(one, turns);
    until([&] { return nodes().empty(); });
    BOOST_TEST(by.remove(folder).ok());
    BOOST_TEST(by.make(folder).ok());
    const auto prefix = folder + '/' + node_prefix(layout::standard, std::string(32, 'a'), role::exclusive);
    reply last;
    for (int i = 0; i < turns; ++i) {
        if (last.ok())
            by.talk->ask().leave(last.text, company::none, replied());
        last = by.make(prefix, node_kind::ephemeral_sequential);
    }
    BOOST_TEST(last.text == by.path(prefix + "0000000039"));
    BOOST_TEST(!run(one.try_acquire("k")).has_value());
    BOOST_TEST(nodes().size() == 1U);
    BOOST_TEST(by.finish([&](replied done) { by.talk->ask().leave(last.text, company::none, std::move(done)); }).ok());
    take_turns(one, 1);
    check_end();
}

/// All that come after it have the same.
BOOST_FIXTURE_TEST_CASE(the_highest_number_of_a_folder_is_nobodys, watched_server)
{
    constexpr std::int64_t highest = 2'147'483'647;
    use_numbers_up(highest - 10);
    auto& one = add();
    take_turns(one, 9);
    auto held = run(one.acquire("k"));
    BOOST_TEST(number() == std::to_string(highest - 1));
    run(held.release(on_failure::raise));
    // Nobody else is there: it begins anew.
    auto& two = add();
    held = run(two.acquire("k"));
    BOOST_TEST(number() == "0000000000");
    for (const auto mode : {lock_mode::shared, lock_mode::exclusive})
        BOOST_TEST(!run(one.try_acquire("k", {.mode = mode})).has_value());
    run(held.release(on_failure::raise));
    take_turns(one, 1);
    check_end();
}

BOOST_FIXTURE_TEST_CASE(whoever_waits_with_the_highest_number_of_a_folder_waits_for_a_new_one, watched_server)
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
    take_turns(one, 1);
    check_end();
}

BOOST_AUTO_TEST_CASE(a_thousand_local_waiters_stand_there_as_two_nodes)
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

BOOST_AUTO_TEST_CASE(a_session_of_few_ticks_is_warned_of)
{
    const auto use = [&](std::chrono::milliseconds session_timeout) {
        run(run(add(session_timeout).acquire("k")).release(on_failure::raise));
    };
    use(4s);
    BOOST_TEST(told->warnings.empty());
    use(1500ms);
    BOOST_TEST_REQUIRE(told->warnings.size() == 1U);
    BOOST_TEST(told->warned_of("1500 ms"), told->warnings.front());
    check_end();
}

BOOST_AUTO_TEST_CASE(what_is_too_large_is_refused_and_disturbs_nobody)
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
        auto listed = start(io, backend->inspect(large->key()));
        BOOST_TEST((listed.get(io).error->code == errc::invalid_key));
    }
    BOOST_TEST(run(held.is_locked()));
    BOOST_TEST(told->suspensions == 0);
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(a_stranger_is_denied_what_belongs_to_a_user)
{
    const auto with = [&](const std::string& user) -> locker& {
        return add(10s, "zookeeper://" + user + "@127.0.0.1:" + std::to_string(server->port()));
    };
    auto held = run(add(of_user(options(), "me", "secret")).acquire("k"));
    BOOST_TEST(!run(with("me:secret").try_acquire("k")));
    for (auto* const stranger : {&add(), &with("me:other")}) {
        for (const auto* const key : {"k", "another"}) {
            try {
                run(stranger->try_acquire(key));
                BOOST_ERROR("not refused");
            } catch (const error& refused) {
                BOOST_TEST((refused.code() == errc::access_denied), refused.what());
                BOOST_TEST(std::string_view(refused.what()).find("secret") == std::string_view::npos);
            }
        }
    }
    run(held.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(whoever_was_given_rights_takes_part)
{
    auto given = of_user(options(), "me", "secret");
    given.access = {{.permissions = zookeeper::access_right::all & ~zookeeper::access_right::admin}};
    auto held = run(add(given).acquire("k"));
    auto waiting = queue(add());
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(whoever_may_only_read_has_no_lock_and_no_session_that_lasts)
{
    auto given = of_user(options(), "me", "secret");
    given.access = {{.scheme = "auth", .id = {}}, {.permissions = zookeeper::access_right::read}};
    auto held = run(add(given).acquire("k"));
    auto& reader = add();
    std::string why;
    // What was asked before the server's refusal was heard has an answer, and a true one.
    for (int i = 0; i < 20 && why.empty(); ++i) {
        try {
            BOOST_TEST(run(reader.list()).size() == 1U);
        } catch (const error& refused) {
            BOOST_TEST((refused.code() == errc::access_denied));
            why = refused.what();
        }
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

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
