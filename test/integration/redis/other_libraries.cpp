// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The plain layout together with lock libraries of other languages, on the same keys.

#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include "server.hpp"
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

struct library
{
    const char* name;
    const char* program;
    /// Package that has to be installed in the folder of the Node modules. Null for Python.
    const char* module;
};

constexpr library libraries[] = {
    {"ioredis_lock", "ioredis-lock.js", "@microfleet/ioredis-lock"},
    {"redlock", "redlock.js", "redlock"},
    {"locco", "locco.js", "@kontsedal/locco"},
    {"redis_py", "redis_py.py", nullptr},
};

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
std::string missing(const library& other)
{
    if (!other.module)
        return python().empty() ? "there is no redis-py; see scripts/setup.sh peers" : "";
    if (!succeeds("node --version"))
        return "there is no node";
    if (!std::filesystem::exists(cache_folder() / "peers/node_modules" / other.module))
        return std::string(other.module) + " is not installed; see scripts/setup.sh peers";
    return {};
}

std::vector<std::string> command_for(const library& other, std::uint16_t port)
{
    const std::string program = std::string(COLOCK_OTHER_LIBRARIES) + "/" + other.program;
    if (!other.module)
        return {python(), program, std::to_string(port)};
    return {"node", program, std::to_string(port), cache_folder() / "peers"};
}

/// A client of another library and a colock client.
struct encounter
{
    explicit encounter(const library& other) : them(io, command_for(other, server.port()))
    {
        // The other program has to be running before the first lease begins, because its start takes long.
        BOOST_TEST_REQUIRE(them.ask("take something 1000") == "granted");
    }
    ~encounter() { run_coro(io, us.shutdown()); }

    lock acquire(std::chrono::milliseconds ttl) { return run_coro(io, us.acquire("k", {.ttl = ttl})); }
    bool refused() { return !run_coro(io, us.try_acquire("k")); }
    void release_held(lock& held) { run_coro(io, held.release(on_failure::raise)); }

    redis_server server;
    asio::io_context io;
    foreign_client them;
    locker us{redis::make_adapter(io.get_executor(),
        {.url = server.url(), .layout = redis::layout::plain, .operation_timeout = 10s, .poll_interval = 5ms})};
};

void their_lock_keeps_us_out_until_they_release(const library& other)
{
    encounter f(other);
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

void our_lock_keeps_them_out_until_its_end(const library& other)
{
    encounter f(other);
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

void neither_release_removes_what_is_the_others(const library& other)
{
    encounter f(other);
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

void both_add_to_one_number_and_nothing_is_lost(const library& other)
{
    encounter f(other);
    auto theirs = f.them.start_asking("add k number 50");
    auto ours = start(f.io, [](encounter& env) -> asio::awaitable<void> {
        for (int i = 0; i < 50; ++i) {
            co_await env.us.with_lock("k", [&env]() -> asio::awaitable<void> {
                const auto value = env.server({"GET", "number"});
                co_await asio::steady_timer(env.io, 1ms).async_wait(asio::use_awaitable);
                env.server({"SET", "number", std::to_string(value == "(nil)" ? 1 : std::stol(value) + 1)});
            });
        }
    }(f));
    ours.get(f.io);
    BOOST_TEST(theirs.get(f.io) == "added");
    BOOST_TEST(f.server({"GET", "number"}) == "100");
}

/// Registers a suite for each library, so that each can be skipped separately.
class registration
{
public:
    registration()
    {
        for (const auto& other : libraries) {
            auto* const suite = new ut::test_suite(std::string("redis_beside_") + other.name, __FILE__, __LINE__);
            suite->add_precondition([suite, &other](ut::test_unit_id) {
                const auto why = missing(other);
                if (!why.empty())
                    std::cout << "skipped: " << suite->full_name() << ": " << why << std::endl;
                return boost::test_tools::assertion_result(why.empty());
            });
            const auto add = [&](void (*body)(const library&), const char* name) {
                suite->add(ut::make_test_case([body, &other] { body(other); }, name, __FILE__, __LINE__));
            };
            add(their_lock_keeps_us_out_until_they_release, "their_lock_keeps_us_out_until_they_release");
            add(our_lock_keeps_them_out_until_its_end, "our_lock_keeps_them_out_until_its_end");
            add(neither_release_removes_what_is_the_others, "neither_release_removes_what_is_the_others");
            add(both_add_to_one_number_and_nothing_is_lost, "both_add_to_one_number_and_nothing_is_lost");
            ut::framework::current_auto_test_suite().add(suite);
        }
    }
};

const registration beside_all;

} // namespace
} // namespace colock::testing
