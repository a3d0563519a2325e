// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guarded_server.hpp"
#include "mongo_fixture.hpp"
#include "support/faulty_proxy.hpp"
#include "support/handler_time.hpp"
#include "support/sockets.hpp"
#include "support/virtual_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// Measures the handlers of its lockers. No handler may block the event loop.
struct handler_time_fixture : mongo_fixture
{
    template <class T>
    T run(asio::awaitable<T> coroutine)
    {
        auto under_way = start(io, std::move(coroutine));
        until([&] { return under_way.done(); });
        return under_way.get(io);
    }
    void until(const std::function<bool()>& reached) { longest = std::max(longest, longest_handler(io, reached)); }
    void check(const std::function<void()>& act)
    {
        check_not_blocking([&] {
            longest = {};
            act();
            return longest;
        });
    }
    [[nodiscard]] mongo::options impatient(std::uint16_t port) const
    {
        return {.url = mongodb_url(port), .operation_timeout = 1s, .connect_timeout = 300ms, .idle_timeout = 10min};
    }
    void pass(const locker& by) { run(run(by.acquire("k")).release(on_failure::raise)); }
    void close(const locker& by) { BOOST_TEST(run(by.shutdown(5s)).clean()); }
    void check_fails(const locker& by)
    {
        BOOST_CHECK_THROW(static_cast<void>(run(by.acquire("k", {.retry = retry_policy::never()}))), create_error);
    }
    /// Releases the lock. The release is repeated, because the client may connect again only after its short timeouts.
    void release(lock& held)
    {
        for (int left = 5; held.held(); --left) {
            try {
                run(held.release(on_failure::raise));
            } catch (const release_error&) {
                if (left == 0)
                    throw;
            }
        }
    }

    std::chrono::nanoseconds longest{};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_stalls, handler_time_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(the_loop_goes_on_while_connections_are_made_used_and_closed)
{
    check([&] {
        const auto ours = add(), theirs = add();
        pass(ours);
        std::vector<running<void>> all;
        for (int i = 0; i < 128; ++i) {
            all.push_back(start(io, [](locker by, std::string key) -> asio::awaitable<void> {
                auto held = co_await by.acquire(key);
                co_await held.extend(1min);
                co_await held.release();
            }(i % 2 == 0 ? ours : theirs, std::to_string(i % 16))));
        }
        until([&] { return std::ranges::all_of(all, [](const auto& each) { return each.done(); }); });
        for (auto& each : all)
            each.get(io);
        close(ours);
        close(theirs);
    });
}

BOOST_AUTO_TEST_CASE(the_loop_goes_on_between_logins)
{
    // Each login hashes a password in one handler.
    check([&] {
        const guarded_server guarded;
        const auto at = "127.0.0.1:" + std::to_string(guarded.running.port());
        const auto ours = add({.url = "mongodb://sha1_user:secret@" + at}),
                   theirs =
                       add({.url = "mongodb://other_db_user:secret@" + at + "/other_db?authMechanism=SCRAM-SHA-256"}),
                   nobody = add({.url = "mongodb://sha1_user:wrong@" + at});
        pass(ours);
        pass(theirs);
        check_fails(nobody);
        for (const auto& each : {ours, theirs, nobody})
            close(each);
    });
}

BOOST_AUTO_TEST_CASE(the_loop_goes_on_while_the_server_is_away)
{
    check([&] {
        faulty_proxy link(server->port());
        const auto ours = add(impatient(link.port()));
        auto held = run(ours.acquire("held", {.ttl = 1h}));
        link.silence(true);
        check_fails(ours);
        link.silence(false);
        run(held.extend(1h));
        server->pause();
        check_fails(ours);
        server->resume();
        until([&] { return ours.stats().settling == 0; });
        server->kill();
        check_fails(ours);
        // A server that was never there, and a host name that does not exist.
        const auto lost = add(impatient(free_port()));
        check_fails(lost);
        auto nowhere = impatient(0);
        nowhere.url = "mongodb://no.such.host.invalid/";
        const auto nobody = add(nowhere);
        check_fails(nobody);
        server->start();
        release(held);
        for (const auto& each : {ours, lost, nobody})
            close(each);
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
