// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
#include "encounters.hpp"

#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include "support/foreign_client.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using namespace std::chrono_literals;
namespace ut = boost::unit_test;

bool succeeds(const std::string& command)
{
    return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

/// A Python interpreter that has redis-py, or an empty string.
const std::string& python()
{
    static const std::string found = [] {
        for (const std::string& each : {(cache_folder() / "peers/python/bin/python").string(), std::string("python3")})
        {
            if (succeeds("'" + each + "' -c 'import redis'"))
                return each;
        }
        return std::string();
    }();
    return found;
}

/// Returns why the library cannot be tested here, or an empty string.
std::string missing(const other_library& other)
{
    if (!other.module)
        return python().empty() ? "there is no redis-py; see scripts/setup.sh peers" : "";
    if (!succeeds("node --version"))
        return "there is no node";
    if (!std::filesystem::exists(cache_folder() / "peers/node_modules" / other.module))
        return std::string(other.module) + " is not installed; see scripts/setup.sh peers";
    return {};
}

std::vector<std::string> command_for(const other_library& other, common_store& store)
{
    const std::string program = std::string(COLOCK_OTHER_LIBRARIES) + "/" + other.program;
    const auto port = std::to_string(store.port());
    const std::string kind = store.is_cluster() ? "cluster" : "server";
    if (!other.module)
        return {python(), program, port, kind};
    return {"node", program, port, kind, cache_folder() / "peers"};
}

using store_maker = std::function<std::unique_ptr<common_store>()>;

/// A client of another library and a colock client.
struct encounter
{
    encounter(const other_library& other, const store_maker& make_store)
        : store(make_store()), them(io, command_for(other, *store))
    {
        // The other program has to be running before the first lease begins, because its start takes long.
        BOOST_TEST_REQUIRE(them.ask("take something 1000") == "granted");
    }
    ~encounter() { run_coro(io, us.shutdown()); }

    lock acquire(std::chrono::milliseconds ttl) { return run_coro(io, us.acquire("k", {.ttl = ttl})); }
    bool refused() { return !run_coro(io, us.try_acquire("k")); }
    void release_held(lock& held) { run_coro(io, held.release(on_failure::raise)); }

    std::unique_ptr<common_store> store;
    asio::io_context io;
    foreign_client them;
    locker us{redis::make_adapter(io.get_executor(),
        {.url = store->url(), .layout = redis::layout::plain, .operation_timeout = 10s, .poll_interval = 5ms})};
};

void their_lock_keeps_us_out_until_they_release(const other_library& other, const store_maker& make_store)
{
    encounter f(other, make_store);
    BOOST_TEST(f.them.ask("take k 600000") == "granted");
    BOOST_TEST(f.refused());
    auto waiting = start(f.io, f.us.acquire("k"));
    run_until(f.io, [&] { return f.us.stats().busy >= 5; });
    BOOST_TEST(!waiting.done());
    BOOST_TEST(f.them.ask("release") == "released");
    auto ours = waiting.get(f.io);
    BOOST_TEST(f.them.ask("take k 600000") == "busy");
    f.release_held(ours);
    BOOST_TEST(f.them.ask("take k 600000") == "granted");
    BOOST_TEST(f.them.ask("release") == "released");
}

void our_lock_keeps_them_out_until_its_end(const other_library& other, const store_maker& make_store)
{
    encounter f(other, make_store);
    const auto ours = f.acquire(3s);
    int refusals = 0;
    const auto limit = lease_clock::now() + 30s;
    for (std::string answer; answer != "granted"; refusals += answer == "busy") {
        answer = f.them.ask("take k 600000");
        BOOST_TEST_REQUIRE((answer == "busy" || answer == "granted"), answer);
        BOOST_TEST_REQUIRE((lease_clock::now() < limit));
    }
    // However late the other library asks, it is not granted the lock before our lease has expired.
    BOOST_TEST((lease_clock::now() >= ours.expires_at()));
    BOOST_TEST(refusals > 0);
    BOOST_TEST(f.refused());
    BOOST_TEST(f.them.ask("release") == "released");
}

void neither_release_removes_what_is_the_others(const other_library& other, const store_maker& make_store)
{
    encounter f(other, make_store);
    BOOST_TEST(f.them.ask("take k 300") == "granted");
    auto ours = f.acquire(10min);
    BOOST_TEST(f.them.ask("release") == "not ours");
    BOOST_TEST(run_coro(f.io, ours.is_locked()));
    f.release_held(ours);

    auto late = f.acquire(300ms);
    const auto limit = lease_clock::now() + 30s;
    while (f.them.ask("take k 600000") != "granted")
        BOOST_TEST_REQUIRE((lease_clock::now() < limit));
    BOOST_CHECK_EXCEPTION(f.release_held(late), release_error,
        [](const release_error& failed) { return failed.code() == errc::not_held; });
    BOOST_TEST(f.refused());
    BOOST_TEST(f.them.ask("release") == "released");
}

void both_add_to_one_number_and_nothing_is_lost(const other_library& other, const store_maker& make_store)
{
    encounter f(other, make_store);
    auto theirs = f.them.start_asking("add k number 50");
    auto ours = start(f.io, [](encounter& env) -> asio::awaitable<void> {
        for (int i = 0; i < 50; ++i) {
            co_await env.us.with_lock("k", [&env]() -> asio::awaitable<void> {
                const auto value = env.store->get("number");
                co_await asio::steady_timer(env.io, 1ms).async_wait(asio::use_awaitable);
                env.store->set("number", std::to_string(value == "(nil)" ? 1 : std::stol(value) + 1));
            });
        }
    }(f));
    ours.get(f.io);
    BOOST_TEST(theirs.get(f.io) == "added");
    BOOST_TEST(f.store->get("number") == "100");
}

/// On a cluster, the keys are on all masters.
void many_keys_are_granted_to_one_of_both(const other_library& other, const store_maker& make_store)
{
    encounter f(other, make_store);
    for (int i = 0; i < 20; ++i) {
        const auto key = "many" + std::to_string(i);
        BOOST_TEST(f.them.ask("take " + key + " 600000") == "granted");
        BOOST_TEST(!run_coro(f.io, f.us.try_acquire(key)));
        BOOST_TEST(f.them.ask("release") == "released");
        auto ours = run_coro(f.io, f.us.acquire(key));
        BOOST_TEST(f.them.ask("take " + key + " 600000") == "busy");
        f.release_held(ours);
    }
}

} // namespace

void add_encounters(const other_library& other, const store_maker& make_store)
{
    auto* const suite = new ut::test_suite(other.name, __FILE__, __LINE__);
    suite->add_precondition([suite, other](ut::test_unit_id) {
        const auto why = missing(other);
        if (!why.empty())
            std::cout << "skipped: " << suite->full_name() << ": " << why << std::endl;
        return boost::test_tools::assertion_result(why.empty());
    });
    const auto add = [&](void (*body)(const other_library&, const store_maker&), const char* name) {
        suite->add(ut::make_test_case([=] { body(other, make_store); }, name, __FILE__, __LINE__));
    };
    add(their_lock_keeps_us_out_until_they_release, "their_lock_keeps_us_out_until_they_release");
    add(our_lock_keeps_them_out_until_its_end, "our_lock_keeps_them_out_until_its_end");
    add(neither_release_removes_what_is_the_others, "neither_release_removes_what_is_the_others");
    add(both_add_to_one_number_and_nothing_is_lost, "both_add_to_one_number_and_nothing_is_lost");
    add(many_keys_are_granted_to_one_of_both, "many_keys_are_granted_to_one_of_both");
    ut::framework::current_auto_test_suite().add(suite);
}

} // namespace colock::testing
