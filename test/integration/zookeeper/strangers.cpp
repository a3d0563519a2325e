// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The layouts of other libraries, in one line with these.

#include "server.hpp"
#include "support/process.hpp"
#include "support/run.hpp"
#include "support/stranger.hpp"

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

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
using zookeeper::layout;

struct library
{
    const char* name;
    std::string (*missing)();
    std::vector<std::string> (*command)();
};

std::string program(const char* name)
{
    return std::string(COLOCK_STRANGERS) + "/" + name;
}

std::string curator_classes()
{
    return from_environment("COLOCK_CURATOR_CLASSES", {});
}

// A script to be compiled when it is run needs more than what runs a server.
const library curator{"curator",
    [] {
        const auto classes = curator_classes();
        const bool there = std::filesystem::exists(classes.substr(0, classes.find(':'))) &&
                           std::system("javac -version >/dev/null 2>&1") == 0;
        return std::string(there ? "" : "there is no Curator, or no Java compiler; see scripts/setup.sh peers");
    },
    [] {
        return std::vector<std::string>{"java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
            curator_classes(), program("Curator.java")};
    }};
const library kazoo{"kazoo",
    [] {
        const bool there = std::system("/usr/bin/python3 -c 'import kazoo' >/dev/null 2>&1") == 0;
        return std::string(there ? "" : "there is no kazoo; see scripts/setup.sh peers");
    },
    [] { return std::vector<std::string>{"/usr/bin/python3", program("kazoo_lock.py")}; }};

/// One of them and two of us.
struct encounter
{
    encounter(const library& other, layout how)
        : them(io,
              [&] {
                  auto command = other.command();
                  command.push_back(std::to_string(server.port()));
                  return command;
              }()),
          one(make(how)), two(make(how))
    {
    }
    ~encounter()
    {
        for (auto& each : {one, two})
            run_coro(io, each.shutdown(10s));
    }

    [[nodiscard]] locker make(layout how)
    {
        return locker(zookeeper::make_adapter(io.get_executor(), {.url = zookeeper_url(server.port()) + "/line",
                                                                     .layout = how,
                                                                     .session_timeout = 10s,
                                                                     .server_tick = 500ms,
                                                                     .operation_timeout = 10s}));
    }
    /// Even while none of us does anything.
    void until_in_line(std::size_t nodes)
    {
        const auto limit = lease_clock::now() + 30s;
        while (ephemeral_nodes(server.port()).size() != nodes) {
            BOOST_TEST_REQUIRE((lease_clock::now() < limit));
            run_coro(io, asio::steady_timer(io, 5ms).async_wait(asio::use_awaitable));
        }
    }
    /// In the line, in which so many stand then.
    void stand(const std::string& who, const std::string& kind, std::size_t nodes)
    {
        BOOST_TEST_REQUIRE(them.ask("take " + who + " /line/k " + kind) == "asked");
        until_in_line(nodes);
    }
    [[nodiscard]] running<lock> stand(const locker& who, lock_mode mode, std::size_t nodes)
    {
        auto waiting = start(io, who.acquire("k", {.ttl = 10min, .mode = mode}));
        until_in_line(nodes);
        return waiting;
    }
    void release(running<lock>& ours) { run_coro(io, ours.get(io).release(on_failure::raise)); }
    void release(const std::string& who) { BOOST_TEST_REQUIRE(them.ask("release " + who) == "released"); }

    zookeeper_server server;
    asio::io_context io;
    stranger them;
    locker one, two;
};

void all_are_granted_in_the_order_of_their_calls(const library& other)
{
    encounter f(other, layout::curator_mutex);
    f.stand("a", "mutex", 1);
    BOOST_TEST(f.them.ask("await a") == "granted");
    auto second = f.stand(f.one, lock_mode::exclusive, 2);
    f.stand("b", "mutex", 3);
    auto fourth = f.stand(f.two, lock_mode::exclusive, 4);
    BOOST_TEST(!second.done());
    f.release("a");
    run_until(f.io, [&] { return second.done(); });
    BOOST_TEST(!fourth.done());
    auto third = f.them.start_asking("await b");
    f.until_in_line(3);
    BOOST_TEST(!third.done());
    f.release(second);
    BOOST_TEST(third.get(f.io) == "granted");
    BOOST_TEST(!fourth.done());
    f.release("b");
    f.release(fourth);
    BOOST_TEST(ephemeral_nodes(f.server.port()).empty());
}

void readers_go_together_and_none_overtakes_a_writer(const library& other)
{
    encounter f(other, layout::curator_read_write);
    auto first = f.stand(f.one, lock_mode::shared, 1);
    f.stand("reader", "read", 2);
    BOOST_TEST(f.them.ask("await reader") == "granted");
    f.stand("writer", "write", 3);
    auto late = f.stand(f.two, lock_mode::shared, 4);
    f.release(first);
    BOOST_TEST(!late.done());
    f.release("reader");
    BOOST_TEST(f.them.ask("await writer") == "granted");
    BOOST_TEST(!late.done());
    f.release("writer");
    f.release(late);
    BOOST_TEST(ephemeral_nodes(f.server.port()).empty());
}

/// Why the pattern has to be given: this is what happens without it.
void without_the_pattern_a_held_lock_is_granted_once_more(const library& other)
{
    encounter f(other, layout::curator_mutex);
    auto ours = f.stand(f.one, lock_mode::exclusive, 1);
    run_until(f.io, [&] { return ours.done(); });
    f.stand("a", "plain", 2);
    BOOST_TEST(f.them.ask("await a") == "granted");
    // Its node is in our line nevertheless.
    auto next = f.stand(f.two, lock_mode::exclusive, 3);
    f.release(ours);
    BOOST_TEST(!next.done());
    f.release("a");
    f.release(next);
    BOOST_TEST(ephemeral_nodes(f.server.port()).empty());
}

/// A suite for each, so that each is a test of its own, and skipped by itself.
class registration
{
public:
    explicit registration(const library& other)
        : suite_(new ut::test_suite(std::string("zookeeper_beside_") + other.name, __FILE__, __LINE__))
    {
        suite_->add_precondition([suite = suite_, &other](ut::test_unit_id) {
            const auto why = other.missing();
            if (!why.empty())
                std::cout << "skipped: " << suite->full_name() << ": " << why << std::endl;
            return boost::test_tools::assertion_result(why.empty());
        });
        add("all_are_granted_in_the_order_of_their_calls", other, all_are_granted_in_the_order_of_their_calls);
        if (&other == &curator)
            add("readers_go_together_and_none_overtakes_a_writer", other,
                readers_go_together_and_none_overtakes_a_writer);
        else
            add("without_the_pattern_a_held_lock_is_granted_once_more", other,
                without_the_pattern_a_held_lock_is_granted_once_more);
        ut::framework::current_auto_test_suite().add(suite_);
    }

private:
    void add(const char* name, const library& other, void (*body)(const library&))
    {
        suite_->add(ut::make_test_case([body, &other] { body(other); }, name, __FILE__, __LINE__));
    }

    ut::test_suite* suite_;
};

const registration beside_curator(curator), beside_kazoo(kazoo);

} // namespace
} // namespace colock::testing
