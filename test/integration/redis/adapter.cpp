// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "fixture.hpp"
#include "server.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

namespace colock::testing {
namespace {

using namespace std::chrono_literals;

struct fixture
{
    explicit fixture(redis::options settings = {}, std::vector<std::string> server_settings = {})
        : server(std::move(server_settings))
    {
        if (settings.url == redis::options{}.url)
            settings.url = server.url();
        speak.emplace(io, redis::make_adapter(io.get_executor(), std::move(settings)));
    }
    ~fixture()
    {
        if (speak)
            run_coro(io, speak->backend().close(5s));
    }

    std::string raw(std::initializer_list<std::string_view> words) { return server(words); }

    redis_server server;
    asio::io_context io;
    std::optional<driver> speak;
};

/// How often the server has carried out a command since CONFIG RESETSTAT.
int calls_of(fixture& f, const std::string& command)
{
    const auto name = "cmdstat_" + command + ":calls=";
    const auto told = f.raw({"INFO", "commandstats"});
    const auto at = told.find(name);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    return std::stoi(told.substr(at + name.size()));
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(a_lock_is_one_string_with_token_owner_and_ttl)
{
    fixture f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"me", "here", "why", "g1"});
    const plain_claim_ptr claim = new plain_claim({.key = "k", .ttl = 20s, .owner = owner});
    const auto fence = f.speak->grant(claim);

    const auto value = f.raw({"GET", "{colock}:k"});
    BOOST_TEST(value.starts_with(claim->token().hex()));
    const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
    BOOST_TEST(f.raw({"GET", "{colock}#fence"}) == std::to_string(fence));
    // Above the server's clock in microseconds, as it was when the connection was made.
    const auto seconds = std::stoull(f.raw({"TIME"}));
    BOOST_TEST(fence / 1'000'000 + 30 > seconds);
    BOOST_TEST(fence / 1'000'000 <= seconds);

    const auto held = f.speak->inspect("k");
    BOOST_TEST_REQUIRE(held.size() == 1u);
    BOOST_TEST(held[0].key == "k");
    BOOST_TEST(held[0].owner == "me");
    BOOST_TEST(held[0].host == "here");
    BOOST_TEST(held[0].comment == "why");
    BOOST_TEST(held[0].group == "g1");
    BOOST_TEST(held[0].created.has_value());
    BOOST_TEST(held[0].remaining.has_value());

    f.speak->give_back(claim);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(a_busy_lock_tells_how_long_and_by_whom)
{
    fixture f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"the holder", "", "", ""});
    const plain_claim_ptr holder = new plain_claim({.key = "k", .ttl = 20s, .owner = owner});
    f.speak->grant(holder);
    const auto other = driver::exclusive("k");
    const auto outcome = f.speak->refuse(other);
    BOOST_TEST(outcome.holder == "the holder");
    BOOST_TEST((outcome.retry_after > 15s && outcome.retry_after <= 20s + 1ms));
    const auto again = f.speak->refuse(other);
    BOOST_TEST((again.retry_after > 15s && again.retry_after <= 20s + 1ms));
}

BOOST_AUTO_TEST_CASE(a_repeated_create_finds_its_own_grant_and_gets_a_higher_fence)
{
    fixture f;
    const auto claim = driver::exclusive("k");
    const auto first = f.speak->grant(claim);
    const auto second = f.speak->grant(claim);
    BOOST_TEST(second > first);
    f.speak->give_back(claim);
    BOOST_TEST((f.speak->release(claim).status == release_status::not_held));
}

BOOST_AUTO_TEST_CASE(no_thread_is_started_for_a_numeric_address)
{
    const auto threads = [] {
        return std::distance(
            std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
    };
    fixture f;
    const auto before = threads();
    const auto claim = driver::exclusive("k");
    f.speak->grant(claim);
    BOOST_TEST(threads() == before);
    f.speak->give_back(claim);
}

BOOST_AUTO_TEST_CASE(a_name_is_resolved)
{
    fixture f;
    f.speak.emplace(f.io,
        redis::make_adapter(f.io.get_executor(), {.url = "redis://localhost:" + std::to_string(f.server.port())}));
    f.speak->grant(driver::exclusive("k"));
    driver other(
        f.io, redis::make_adapter(f.io.get_executor(),
                  {.url = "redis://no-such-host.invalid:6379", .operation_timeout = 2s, .connect_timeout = 200ms}));
    const auto refused = other.create(driver::exclusive("k"));
    BOOST_TEST((refused.status == create_status::failed));
    BOOST_TEST_REQUIRE(refused.error);
    BOOST_TEST((refused.error->code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(a_lost_fence_counter_starts_above_the_clock_again)
{
    fixture f;
    const auto before = driver::exclusive("before");
    const auto old_fence = f.speak->grant(before);
    f.raw({"DEL", "{colock}#fence"});
    const auto claim = driver::exclusive("k");
    BOOST_TEST(f.speak->grant(claim) > old_fence);
}

BOOST_AUTO_TEST_CASE(no_fence_is_below_one_that_was_seen_whatever_a_promoted_replica_knows)
{
    redis_server server;
    client_side some({.url = server.url()});
    some.speak.grant(driver::exclusive("first"));
    // The old master's clock was an hour ahead of that of the machine which takes over.
    const auto ahead = std::stoull(server({"GET", "{colock}#fence"})) + 3'600'000'000ULL;
    server({"SET", "{colock}#fence", std::to_string(ahead)});
    const auto before = some.speak.grant(driver::exclusive("before"));
    BOOST_TEST(before > ahead);
    server({"SET", "{colock}#fence", "1700000000000000"});
    server({"CLIENT", "KILL", "TYPE", "normal"});
    run_until(some.io, [&] { return some.told->suspensions == 1; });
    BOOST_TEST(some.speak.grant(driver::exclusive("after")) > before);
}

BOOST_AUTO_TEST_CASE(acquires_that_travel_together_have_fences_of_their_own)
{
    fixture f;
    const auto before = f.speak->grant(driver::exclusive("busy"));
    f.raw({"CONFIG", "RESETSTAT"});
    constexpr std::size_t crowd = 40;
    std::vector<running<create_outcome>> under_way;
    for (std::size_t i = 0; i < crowd; ++i) {
        const auto key = i == 20 ? "busy" : "k" + std::to_string(i);
        const auto claim = i % 3 == 0 ? driver::shared(key) : driver::exclusive(key);
        under_way.push_back(start(f.io, f.speak->backend().create(sent_now(claim))));
    }
    std::set<std::uint64_t> fences;
    for (std::size_t i = 0; i < crowd; ++i) {
        const auto outcome = under_way[i].get(f.io);
        BOOST_TEST((outcome.status == (i == 20 ? create_status::busy : create_status::granted)));
        if (outcome.status == create_status::granted)
            fences.insert(outcome.fence);
    }
    BOOST_TEST(fences.size() == crowd - 1);
    BOOST_TEST(*fences.begin() > before);
    BOOST_TEST(*fences.rbegin() <= std::stoull(f.raw({"GET", "{colock}#fence"})));
    BOOST_TEST(calls_of(f, "incrby") < 10);
    // Later ones are higher.
    BOOST_TEST(f.speak->grant(driver::exclusive("later")) > *fences.rbegin());
}

BOOST_AUTO_TEST_CASE(without_the_counter_nobody_who_travels_together_keeps_a_lock)
{
    fixture f;
    f.speak->grant(driver::exclusive("first"));
    f.raw({"SET", "{colock}#fence", "not a number"});
    std::vector<running<create_outcome>> under_way;
    for (int i = 0; i < 5; ++i)
        under_way.push_back(
            start(f.io, f.speak->backend().create(sent_now(driver::exclusive("k" + std::to_string(i))))));
    for (int i = 0; i < 5; ++i) {
        BOOST_TEST((under_way[static_cast<std::size_t>(i)].get(f.io).status == create_status::failed));
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k" + std::to_string(i)}) == "0");
    }
}

namespace {

/// Releases them all at once, and tells what became of each.
std::vector<release_outcome> release_together(fixture& f, const std::vector<plain_claim_ptr>& held)
{
    std::vector<running<release_outcome>> under_way;
    for (const auto& each : held)
        under_way.push_back(start(f.io, f.speak->backend().release(sent_now(each))));
    std::vector<release_outcome> ended;
    for (auto& each : under_way)
        ended.push_back(each.get(f.io));
    return ended;
}

/// Of these, 3 is gone, 7 is somebody else's, and 11 is no lock at all.
void lose_some(fixture& f)
{
    f.raw({"DEL", "{colock}:k3"});
    f.raw({"SET", "{colock}:k7", "somebody else"});
    f.raw({"DEL", "{colock}:k11"});
    f.raw({"RPUSH", "{colock}:k11", "of another program"});
}

std::vector<plain_claim_ptr> hold_many(fixture& f)
{
    std::vector<plain_claim_ptr> held;
    for (int i = 0; i < 20; ++i)
        f.speak->grant(held.emplace_back(driver::exclusive("k" + std::to_string(i))));
    return held;
}

} // namespace

BOOST_AUTO_TEST_CASE(releases_that_travel_together_are_each_told_the_truth)
{
    fixture f;
    for (const bool flushed : {false, true, false}) {
        const auto held = hold_many(f);
        lose_some(f);
        if (flushed)
            f.raw({"SCRIPT", "FLUSH"});
        f.raw({"CONFIG", "RESETSTAT"});
        const auto ended = release_together(f, held);
        for (std::size_t i = 0; i < ended.size(); ++i) {
            const bool lost = i == 3 || i == 7 || i == 11;
            BOOST_TEST((ended[i].status == (lost ? release_status::not_held : release_status::released)));
            BOOST_TEST(f.raw({"EXISTS", "{colock}:k" + std::to_string(i)}) == (i == 7 || i == 11 ? "1" : "0"));
        }
        BOOST_TEST(calls_of(f, "evalsha") < 10);
        f.raw({"DEL", "{colock}:k7"});
        f.raw({"DEL", "{colock}:k11"});
    }
}

BOOST_AUTO_TEST_CASE(hand_overs_that_travel_together_are_each_told_the_truth)
{
    fixture f;
    for (const bool flushed : {false, true, false}) {
        auto held = hold_many(f);
        lose_some(f);
        if (flushed)
            f.raw({"SCRIPT", "FLUSH"});
        f.raw({"CONFIG", "RESETSTAT"});
        const auto before = std::stoull(f.raw({"GET", "{colock}#fence"}));
        std::vector<plain_claim_ptr> next;
        std::vector<running<hand_over_outcome>> under_way;
        for (std::size_t i = 0; i < held.size(); ++i) {
            next.push_back(driver::exclusive("k" + std::to_string(i), i % 2 == 0 ? 0ms : 60s));
            under_way.push_back(start(f.io, f.speak->backend().hand_over(sent_now(held[i]), sent_now(next[i]))));
        }
        std::set<std::uint64_t> fences;
        for (std::size_t i = 0; i < held.size(); ++i) {
            const auto outcome = under_way[i].get(f.io);
            const bool lost = i == 3 || i == 7 || i == 11;
            BOOST_TEST((outcome.released.status == (lost ? release_status::not_held : release_status::released)));
            const auto expected = i == 7    ? create_status::busy
                                  : i == 11 ? create_status::failed
                                            : create_status::granted;
            BOOST_TEST((outcome.created.status == expected));
            if (expected != create_status::granted)
                continue;
            BOOST_TEST(outcome.created.fence > before);
            fences.insert(outcome.created.fence);
            const auto left = std::stoll(f.raw({"PTTL", "{colock}:k" + std::to_string(i)}));
            BOOST_TEST((i % 2 == 0 ? left == -1 : left > 50'000));
            BOOST_TEST(f.raw({"GET", "{colock}:k" + std::to_string(i)}).starts_with(next[i]->token().hex()));
        }
        BOOST_TEST(fences.size() == held.size() - 2);
        BOOST_TEST(*fences.rbegin() <= std::stoull(f.raw({"GET", "{colock}#fence"})));
        BOOST_TEST(calls_of(f, "evalsha") < 15);
        f.raw({"DEL", "{colock}:k7"});
        f.raw({"DEL", "{colock}:k11"});
        next.erase(next.begin() + 11);
        next.erase(next.begin() + 7);
        for (const auto& each : release_together(f, next))
            BOOST_TEST((each.status == release_status::released));
    }
}

BOOST_AUTO_TEST_CASE(releases_and_hand_overs_travel_together)
{
    fixture f;
    const auto held = hold_many(f);
    std::vector<running<release_outcome>> released;
    std::vector<running<hand_over_outcome>> handed_over;
    std::vector<running<create_outcome>> created;
    for (std::size_t i = 0; i < held.size(); ++i) {
        if (i % 2 == 0) {
            released.push_back(start(f.io, f.speak->backend().release(sent_now(held[i]))));
            created.push_back(start(f.io, f.speak->backend().create(sent_now(driver::exclusive(held[i]->key())))));
        } else {
            handed_over.push_back(start(
                f.io, f.speak->backend().hand_over(sent_now(held[i]), sent_now(driver::exclusive(held[i]->key())))));
        }
    }
    std::set<std::uint64_t> fences;
    for (auto& each : released)
        BOOST_TEST((each.get(f.io).status == release_status::released));
    for (auto& each : created) {
        const auto outcome = each.get(f.io);
        BOOST_TEST((outcome.status == create_status::granted));
        fences.insert(outcome.fence);
    }
    for (auto& each : handed_over) {
        const auto outcome = each.get(f.io);
        BOOST_TEST((outcome.created.status == create_status::granted));
        fences.insert(outcome.created.fence);
    }
    BOOST_TEST(fences.size() == held.size());
}

BOOST_AUTO_TEST_CASE(without_the_counter_no_hand_over_loses_a_lock_that_it_was_not_asked_for)
{
    fixture f;
    const auto held = hold_many(f);
    const auto count = f.raw({"GET", "{colock}#fence"});
    f.raw({"SET", "{colock}#fence", "not a number"});
    std::vector<running<hand_over_outcome>> under_way;
    for (const auto& each : held)
        under_way.push_back(
            start(f.io, f.speak->backend().hand_over(sent_now(each), sent_now(driver::exclusive(each->key())))));
    for (std::size_t i = 0; i < held.size(); ++i) {
        const auto outcome = under_way[i].get(f.io);
        BOOST_TEST((outcome.released.status == release_status::released));
        BOOST_TEST((outcome.created.status == create_status::failed));
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k" + std::to_string(i)}) == "0");
    }
    f.raw({"SET", "{colock}#fence", count.c_str()});
}

BOOST_AUTO_TEST_CASE(a_demoted_master_says_of_no_release_that_its_lock_was_lost)
{
    fixture f({.operation_timeout = 2s});
    const auto held = hold_many(f);
    f.raw({"REPLICAOF", "127.0.0.1", "1"});
    for (const auto& each : release_together(f, held))
        BOOST_TEST((each.status == release_status::failed));
    f.raw({"REPLICAOF", "NO", "ONE"});
    for (const auto& each : release_together(f, held))
        BOOST_TEST((each.status == release_status::released));
}

BOOST_AUTO_TEST_CASE(no_ttl_means_until_released)
{
    fixture f;
    const auto claim = driver::exclusive("k", 0ms);
    f.speak->grant(claim);
    BOOST_TEST(f.raw({"PTTL", "{colock}:k"}) == "-1");
    BOOST_TEST((f.speak->refuse(driver::exclusive("k")).retry_after == 0ns));
    BOOST_TEST(!f.speak->inspect("k").at(0).remaining.has_value());
    f.speak->give_back(claim);

    const auto reader = driver::shared("s", 0, 0ms);
    f.speak->grant(reader);
    BOOST_TEST(f.raw({"PTTL", "{colock}:s"}) == "-1");
    f.speak->grant(driver::shared("s", 0, 10s));
    BOOST_TEST(f.raw({"PTTL", "{colock}:s"}) == "-1");
    f.speak->give_back(reader);
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:s"})) > 5'000);
}

BOOST_AUTO_TEST_CASE(extend_sets_the_remaining_time_and_never_creates)
{
    fixture f;
    const auto claim = driver::exclusive("k", 10s);
    BOOST_TEST((f.speak->extend(claim, 10s).status == extend_status::not_held));
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
    f.speak->grant(claim);
    BOOST_TEST((f.speak->extend(claim, 100s).status == extend_status::extended));
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 90'000);
    BOOST_TEST((f.speak->extend(claim, 9s).status == extend_status::extended));
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) <= 9'000);
    f.speak->check_held(claim);
    f.raw({"SET", "{colock}:k", "somebody else"});
    BOOST_TEST((f.speak->extend(claim, 10s).status == extend_status::not_held));
    BOOST_TEST((f.speak->release(claim).status == release_status::not_held));
    f.speak->check_not_held(claim);
    BOOST_TEST(f.raw({"GET", "{colock}:k"}) == "somebody else");
}

BOOST_AUTO_TEST_CASE(readers_share_and_each_expires_by_itself)
{
    fixture f;
    const auto slow = driver::shared("k", 0, 60s);
    const auto brief = driver::shared("k", 0, 2s);
    f.speak->grant(slow);
    f.speak->grant(brief);
    BOOST_TEST(f.speak->inspect("k").size() == 2u);
    const auto brief_is_gone = [&] { return f.speak->inspect("k").size() == 1; };
    run_until(f.io, [&] { return brief_is_gone(); });
    f.speak->check_not_held(brief);
    BOOST_TEST((f.speak->extend(brief, 10s).status == extend_status::not_held));
    f.speak->check_held(slow);
    BOOST_TEST((f.speak->extend(slow, 100s).status == extend_status::extended));
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 90'000);
    f.speak->give_back(slow);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(a_reader_alone_is_one_string_and_a_second_makes_it_a_set)
{
    fixture f;
    const auto owner = std::make_shared<const owner_data>(owner_data{"me", "here", "why", "g1"});
    const plain_claim_ptr first = new plain_claim({.key = "k", .mode = lock_mode::shared, .ttl = 20s, .owner = owner});
    const auto second = driver::shared("k", 0, 10s);
    f.speak->grant(first);
    BOOST_TEST(f.raw({"GET", "{colock}:k"}).starts_with('s' + first->token().hex()));
    const auto alone = f.speak->inspect("k");
    BOOST_REQUIRE(alone.size() == 1u);
    BOOST_TEST((alone[0].mode == lock_mode::shared));
    BOOST_TEST(alone[0].owner == "me");
    BOOST_TEST(alone[0].group == "g1");
    f.speak->check_held(first);
    BOOST_TEST((f.speak->extend(first, 40s).status == extend_status::extended));
    const auto again = f.speak->grant(first);

    BOOST_TEST(f.speak->grant(second) > again);
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "2");
    const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
    const auto both = f.speak->inspect("k");
    BOOST_REQUIRE(both.size() == 2u);
    BOOST_TEST((both[0].remaining > 5s && both[0].remaining <= 10s));
    BOOST_TEST((both[1].remaining > 15s && both[1].remaining <= 20s));
    BOOST_TEST(both[1].owner == "me");
    BOOST_TEST((both[1].created == alone[0].created));
    f.speak->check_held(first);
    f.speak->give_back(first);
    f.speak->check_not_held(first);
    f.speak->check_held(second);
    f.speak->give_back(second);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(readers_with_and_without_ttl_keep_their_own)
{
    fixture f;
    const auto eternal = driver::shared("k", 0, 0ms);
    const auto brief = driver::shared("k", 0, 20s);
    for (const bool eternal_first : {true, false}) {
        f.speak->grant(eternal_first ? eternal : brief);
        f.speak->grant(eternal_first ? brief : eternal);
        BOOST_TEST(f.raw({"PTTL", "{colock}:k"}) == "-1");
        BOOST_TEST((f.speak->refuse(driver::exclusive("k")).retry_after == 0ms));
        f.raw({"DEL", "{colock}#w:k"});
        f.speak->give_back(eternal);
        const auto ttl = std::stoll(f.raw({"PTTL", "{colock}:k"}));
        BOOST_TEST((ttl > 15'000 && ttl <= 20'000));
        const auto busy = f.speak->refuse(driver::exclusive("k"));
        BOOST_TEST((busy.retry_after > 15s && busy.retry_after <= 20s));
        f.raw({"DEL", "{colock}#w:k"});
        f.speak->give_back(brief);
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
    }
}

BOOST_AUTO_TEST_CASE(a_semaphore_counts_its_holders)
{
    fixture f;
    const auto first = driver::shared("k", 2, 20s);
    const auto second = driver::shared("k", 2, 60s);
    const auto third = driver::shared("k", 2, 60s);
    f.speak->grant(first);
    f.speak->grant(second);
    const auto busy = f.speak->refuse(third);
    BOOST_TEST((busy.retry_after > 15s && busy.retry_after <= 20s + 1ms));
    BOOST_TEST(f.raw({"ZCARD", "{colock}:k"}) == "2");
    f.speak->grant(second);
    f.speak->give_back(first);
    f.speak->grant(third);
}

BOOST_AUTO_TEST_CASE(a_waiting_writer_keeps_new_readers_out)
{
    fixture f;
    const auto reader = driver::shared("k", 0, 60s);
    f.speak->grant(reader);
    const auto writer = driver::exclusive("k");
    f.speak->refuse(writer);
    BOOST_TEST(f.raw({"GET", "{colock}#w:k"}) == writer->token().hex());
    f.speak->refuse(driver::shared("k"));
    // A reader that is in already is granted again.
    f.speak->grant(reader);
    f.speak->give_back(reader);
    // One that finds the lock free gives way.
    const auto refused = f.speak->refuse(driver::shared("k"));
    BOOST_TEST((refused.retry_after > 0ms && refused.retry_after <= 6s));
    BOOST_TEST(f.raw({"EXISTS", "{colock}:k"}) == "0");
    f.speak->grant(writer);
    BOOST_TEST(f.raw({"EXISTS", "{colock}#w:k"}) == "0");
    f.speak->give_back(writer);
    f.speak->grant(driver::shared("k"));
}

BOOST_AUTO_TEST_CASE(readers_that_only_try_do_not_take_what_a_writer_waits_for)
{
    fixture f;
    client_side others({.url = f.server.url()});
    const auto reader = driver::shared("k");
    f.speak->grant(reader);
    const auto writer = driver::exclusive("k");
    others.speak.refuse(writer);
    f.speak->give_back(reader);
    // One may find out by taking it and giving it back; from then on it is known.
    f.speak->refuse(driver::one_attempt("k", lock_mode::shared));
    f.raw({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 10; ++i)
        f.speak->refuse(driver::one_attempt("k", lock_mode::shared));
    BOOST_TEST(f.raw({"INFO", "commandstats"}).find("cmdstat_set:") == std::string::npos);
    others.speak.grant(writer);
    others.speak.give_back(writer);
    // Asked first, and then let in.
    f.speak->grant(driver::one_attempt("k", lock_mode::shared));
}

BOOST_AUTO_TEST_CASE(a_writer_that_gives_up_lets_readers_in)
{
    fixture f;
    const auto reader = driver::shared("k", 0, 60s);
    f.speak->grant(reader);
    const auto writer = driver::exclusive("k");
    f.speak->refuse(writer);
    BOOST_TEST((f.speak->abandon(writer).status == release_status::not_held));
    BOOST_TEST(f.raw({"EXISTS", "{colock}#w:k"}) == "0");
    f.speak->grant(driver::shared("k"));
}

BOOST_AUTO_TEST_CASE(a_release_wakes_a_waiter)
{
    fixture f;
    const auto holder = driver::exclusive("k");
    f.speak->grant(holder);
    const auto waiter = driver::exclusive("k");
    auto waiting = f.speak->start_acquire(waiter);
    run_until(f.io, [&] { return f.raw({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    BOOST_TEST(!waiting.done());
    f.speak->give_back(holder);
    BOOST_TEST(waiting.get(f.io) > 0u);
    f.speak->give_back(waiter);
}

BOOST_AUTO_TEST_CASE(a_killed_subscriber_looks_again)
{
    fixture f;
    const auto holder = driver::exclusive("k");
    f.speak->grant(holder);
    const auto waiter = driver::exclusive("k");
    auto waiting = f.speak->start_acquire(waiter);
    run_until(f.io, [&] { return f.raw({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    f.raw({"CLIENT", "KILL", "TYPE", "pubsub"});
    // Nobody publishes this.
    f.raw({"DEL", "{colock}:k"});
    BOOST_TEST(waiting.get(f.io) > 0u);
}

BOOST_AUTO_TEST_CASE(a_lock_is_handed_over_in_one_step)
{
    fixture f;
    const auto held = driver::exclusive("k", 60s);
    const auto next = driver::exclusive("k", 600s);
    const auto first = f.speak->grant(held);
    f.speak->refuse(next);
    const auto outcome = f.speak->hand_over(held, next);
    // With the ttl that the next one asked for.
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 60'000);
    BOOST_TEST((outcome.released.status == release_status::released));
    BOOST_TEST_REQUIRE((outcome.created.status == create_status::granted));
    BOOST_TEST(outcome.created.fence > first);
    f.speak->check_held(next);
    f.speak->check_not_held(held);

    const auto for_ever = driver::exclusive("k", 0ms);
    BOOST_TEST((f.speak->hand_over(next, for_ever).created.status == create_status::granted));
    BOOST_TEST(f.raw({"PTTL", "{colock}:k"}) == "-1");
    const auto shorter = driver::exclusive("k", 30s);
    BOOST_TEST((f.speak->hand_over(for_ever, shorter).created.status == create_status::granted));
    const auto left = std::stoll(f.raw({"PTTL", "{colock}:k"}));
    BOOST_TEST((left > 0 && left <= 30'000));

    const auto third = driver::exclusive("k");
    const auto not_ours = f.speak->hand_over(held, third);
    BOOST_TEST((not_ours.released.status == release_status::not_held));
    BOOST_TEST((not_ours.created.status == create_status::busy));
}

BOOST_AUTO_TEST_CASE(locks_are_listed_filtered_broken_and_swept)
{
    fixture f;
    f.raw({"SET", "{colock}:odd[1", "not ours"});
    f.raw({"SET", "elsewhere", "not ours"});
    const auto owner = std::make_shared<const owner_data>(owner_data{"o1", "", "", ""});
    f.speak->grant(plain_claim_ptr(new plain_claim({.key = "odd[1]", .owner = owner})));
    for (int i = 0; i < 450; ++i)
        f.speak->grant(driver::exclusive("many:" + std::to_string(i)));
    f.speak->grant(driver::shared("readers", 0, 60s));
    f.speak->grant(driver::shared("readers", 0, 60s));

    BOOST_TEST(f.speak->list().size() == 454u);
    BOOST_TEST(f.speak->list({.key_prefix = "many:"}).size() == 450u);
    BOOST_TEST(f.speak->list({.key_prefix = "odd[1"}).size() == 2u);
    BOOST_TEST(f.speak->list({.owner = "o1"}).size() == 1u);
    BOOST_TEST(f.speak->list({.mode = lock_mode::shared}).size() == 2u);
    BOOST_TEST(f.speak->list({.key = "many:7"}).size() == 1u);

    BOOST_TEST(f.speak->break_key("readers").size() == 2u);
    BOOST_TEST(f.speak->inspect("readers").empty());

    const auto expired = std::to_string(std::stoll(f.raw({"TIME"})) * 1000 - 60'000);
    for (const auto* member : {"a", "b", "c"})
        f.raw({"ZADD", "{colock}:stale", expired, member});
    f.speak->grant(driver::shared("stale", 0, 60s));
    for (const auto* member : {"a", "b", "c"})
        f.raw({"ZADD", "{colock}:stale", expired, member});
    BOOST_TEST(f.speak->purge(2).size() == 2u);
    BOOST_TEST(f.speak->purge().size() == 1u);
    BOOST_TEST(f.speak->purge().empty());
    BOOST_TEST(f.speak->inspect("stale").size() == 1u);
}

BOOST_AUTO_TEST_CASE(forgotten_scripts_are_sent_again_on_every_path)
{
    fixture f;
    const auto flush = [&] { BOOST_TEST(f.raw({"SCRIPT", "FLUSH"}) == "OK"); };
    const auto claim = driver::exclusive("k");
    const auto other = driver::exclusive("k");
    flush();
    f.speak->grant(claim);
    flush();
    f.speak->refuse(other);
    flush();
    BOOST_TEST((f.speak->extend(claim, 10s).status == extend_status::extended));
    flush();
    f.speak->check_held(claim);
    flush();
    BOOST_TEST((f.speak->hand_over(claim, other).created.status == create_status::granted));
    flush();
    f.speak->give_back(other);
    flush();
    const auto reader = driver::shared("s", 3, 60s);
    f.speak->grant(reader);
    flush();
    BOOST_TEST((f.speak->extend(reader, 10s).status == extend_status::extended));
    flush();
    f.speak->check_held(reader);
    flush();
    BOOST_TEST(f.speak->inspect("s").size() == 1u);
    flush();
    BOOST_TEST(f.speak->list().size() == 1u);
    flush();
    const auto writer = driver::exclusive("s");
    f.speak->refuse(writer);
    flush();
    BOOST_TEST((f.speak->abandon(writer).status == release_status::not_held));
    flush();
    f.speak->give_back(reader);
    flush();
    BOOST_TEST(f.speak->purge().empty());
    flush();
    BOOST_TEST(f.speak->break_key("s").empty());
    f.raw({"FLUSHALL"});
    flush();
    f.speak->grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(another_programs_key_is_an_error_and_not_busy)
{
    fixture f;
    f.raw({"LPUSH", "{colock}:k", "x"});
    for (const auto& claim : {driver::exclusive("k"), driver::shared("k")}) {
        const auto outcome = f.speak->create(claim);
        BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
        BOOST_TEST(outcome.error->code == errc::misconfigured_backend);
        BOOST_TEST(outcome.error->detail.find("WRONGTYPE") != std::string::npos);
        BOOST_TEST((f.speak->release(claim).status == release_status::not_held));
    }
    f.raw({"DEL", "{colock}#fence"});
    f.raw({"LPUSH", "{colock}#fence", "x"});
    const auto claim = driver::exclusive("free");
    BOOST_TEST((f.speak->create(claim).status == create_status::failed));
    BOOST_TEST(f.raw({"EXISTS", "{colock}:free"}) == "0");
    const auto reader = driver::shared("free");
    BOOST_TEST((f.speak->create(reader).status == create_status::failed));
    BOOST_TEST(f.raw({"EXISTS", "{colock}:free"}) == "0");
}

BOOST_AUTO_TEST_CASE(run_returns_when_nothing_is_left_to_do)
{
    fixture f({.idle_timeout = 0ms});
    const auto claim = driver::exclusive("k");
    f.speak->grant(claim);
    f.speak->give_back(claim);
    const auto begin = std::chrono::steady_clock::now();
    f.io.restart();
    f.io.run();
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 5s));
    // It connects again when it is needed.
    f.io.restart();
    f.speak->grant(claim);
    f.speak->give_back(claim);
    BOOST_TEST(f.speak->backend().reconnects() == 0u);
}

BOOST_AUTO_TEST_CASE(a_closed_adapter_stays_usable)
{
    fixture f({.idle_timeout = std::chrono::milliseconds::max()});
    const auto claim = driver::exclusive("k");
    f.speak->grant(claim);
    run_coro(f.io, f.speak->backend().close(5s));
    f.io.restart();
    f.io.run();
    f.io.restart();
    f.speak->give_back(claim);
}

BOOST_AUTO_TEST_CASE(the_last_owner_closes_the_connection)
{
    fixture f({.idle_timeout = std::chrono::milliseconds::max()});
    f.speak->grant(driver::exclusive("k"));
    f.speak.reset();
    f.io.restart();
    const auto begin = std::chrono::steady_clock::now();
    f.io.run();
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 5s));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(redis_plain_layout)

BOOST_AUTO_TEST_CASE(the_key_holds_just_the_token)
{
    fixture f({.layout = redis::layout::plain});
    const auto able = f.speak->backend().capabilities();
    BOOST_TEST((!able.fence && !able.shared && !able.semaphore));
    const auto claim = driver::exclusive("k", 20s);
    BOOST_TEST(f.speak->grant(claim) == 0u);
    BOOST_TEST(f.raw({"GET", "k"}) == claim->token().hex());
    BOOST_TEST(f.raw({"SET", "k", "other", "NX", "PX", "1000"}) == "(nil)");
    f.speak->check_held(claim);
    BOOST_TEST((f.speak->extend(claim, 30s).status == extend_status::extended));
    f.speak->give_back(claim);
    BOOST_TEST(f.raw({"SET", "k", "other", "NX", "PX", "30000"}) == "OK");
    const auto busy = f.speak->refuse(claim);
    BOOST_TEST((busy.retry_after > 20s));
    BOOST_TEST((f.speak->release(claim).status == release_status::not_held));
    BOOST_TEST(f.raw({"GET", "k"}) == "other");
    BOOST_TEST(f.raw({"DBSIZE"}) == "1");
}

BOOST_AUTO_TEST_CASE(a_token_of_another_library_is_not_taken_for_what_it_is_not)
{
    fixture f({.prefix = "locks:", .layout = redis::layout::plain});
    const std::string token = "s" + std::string(60, '1');
    BOOST_TEST(f.raw({"SET", "locks:k", token, "NX", "PX", "30000"}) == "OK");
    for (const auto& seen : {f.speak->inspect("k"), f.speak->list(), f.speak->break_key("k")}) {
        BOOST_TEST_REQUIRE(seen.size() == 1u);
        BOOST_TEST(seen[0].key == "k");
        BOOST_TEST((seen[0].mode == lock_mode::exclusive));
        BOOST_TEST(seen[0].owner.empty());
        BOOST_TEST(!seen[0].created.has_value());
        BOOST_TEST((seen[0].remaining > 10s));
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_notices_a_silent_release)
{
    fixture f({.layout = redis::layout::plain, .poll_interval = 20ms});
    BOOST_TEST(f.raw({"SET", "k", "other", "NX", "PX", "30000"}) == "OK");
    auto waiting = f.speak->start_acquire(driver::exclusive("k"));
    run_until(f.io, [&] { return f.raw({"PUBSUB", "NUMSUB", "k"}) == "k\n1\n"; });
    f.raw({"DEL", "k"});
    waiting.get(f.io);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
