// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Lock queues shared with other libraries, in the layouts of those libraries.

#include "server.hpp"
#include "support/foreign_client.hpp"
#include "support/process.hpp"
#include "support/run.hpp"

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
    return std::string(COLOCK_OTHER_LIBRARIES) + "/" + name;
}

std::string curator_classes()
{
    return from_environment("COLOCK_CURATOR_CLASSES", {});
}

// Java compiles Curator.java when it is run, which needs a Java compiler. A server runs without one.
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

/// One client of the other library, and two lockers of this one.
struct shared_queue
{
    shared_queue(const library& other, layout how)
        : them(io,
              [&] {
                  auto command = other.command();
                  command.push_back(std::to_string(server.port()));
                  return command;
              }()),
          one(make(how)), two(make(how))
    {
    }
    ~shared_queue()
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
    /// Waits until the server has so many ephemeral nodes. Also works while no locker does anything.
    void wait_for_nodes(std::size_t nodes)
    {
        const auto limit = lease_clock::now() + 30s;
        while (ephemeral_nodes(server.port()).size() != nodes) {
            BOOST_TEST_REQUIRE((lease_clock::now() < limit));
            run_coro(io, asio::steady_timer(io, 5ms).async_wait(asio::use_awaitable));
        }
    }
    /// Enqueues a claim, and waits until the queue has so many nodes.
    void enqueue(const std::string& who, const std::string& kind, std::size_t nodes)
    {
        BOOST_TEST_REQUIRE(them.ask("take " + who + " /line/k " + kind) == "asked");
        wait_for_nodes(nodes);
    }
    [[nodiscard]] running<lock> enqueue(const locker& who, lock_mode mode, std::size_t nodes)
    {
        auto waiting = start(io, who.acquire("k", {.ttl = 10min, .mode = mode}));
        wait_for_nodes(nodes);
        return waiting;
    }
    void release(running<lock>& ours) { run_coro(io, ours.get(io).release(on_failure::raise)); }
    void release(const std::string& who) { BOOST_TEST_REQUIRE(them.ask("release " + who) == "released"); }

    zookeeper_server server;
    asio::io_context io;
    foreign_client them;
    locker one, two;
};

void all_are_granted_in_the_order_of_their_calls(const library& other)
{
    shared_queue f(other, layout::curator_mutex);
    f.enqueue("a", "mutex", 1);
    BOOST_TEST(f.them.ask("await a") == "granted");
    auto second = f.enqueue(f.one, lock_mode::exclusive, 2);
    f.enqueue("b", "mutex", 3);
    auto fourth = f.enqueue(f.two, lock_mode::exclusive, 4);
    BOOST_TEST(!second.done());
    f.release("a");
    run_until(f.io, [&] { return second.done(); });
    BOOST_TEST(!fourth.done());
    auto third = f.them.start_asking("await b");
    f.wait_for_nodes(3);
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
    shared_queue f(other, layout::curator_read_write);
    auto first = f.enqueue(f.one, lock_mode::shared, 1);
    f.enqueue("reader", "read", 2);
    BOOST_TEST(f.them.ask("await reader") == "granted");
    f.enqueue("writer", "write", 3);
    auto late = f.enqueue(f.two, lock_mode::shared, 4);
    f.release(first);
    BOOST_TEST(!late.done());
    f.release("reader");
    BOOST_TEST(f.them.ask("await writer") == "granted");
    BOOST_TEST(!late.done());
    f.release("writer");
    f.release(late);
    BOOST_TEST(ephemeral_nodes(f.server.port()).empty());
}

/// Shows why kazoo's locks need the pattern of Curator's nodes: without it, kazoo ignores the nodes of others.
void without_the_pattern_a_held_lock_is_granted_once_more(const library& other)
{
    shared_queue f(other, layout::curator_mutex);
    auto ours = f.enqueue(f.one, lock_mode::exclusive, 1);
    run_until(f.io, [&] { return ours.done(); });
    f.enqueue("a", "plain", 2);
    BOOST_TEST(f.them.ask("await a") == "granted");
    // The node of the other library is in our lock queue nevertheless.
    auto next = f.enqueue(f.two, lock_mode::exclusive, 3);
    f.release(ours);
    BOOST_TEST(!next.done());
    f.release("a");
    f.release(next);
    BOOST_TEST(ephemeral_nodes(f.server.port()).empty());
}

/// One suite for each library, so that each is a test of its own, and can be skipped alone.
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
