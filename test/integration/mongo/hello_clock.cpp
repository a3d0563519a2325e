// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Tests of a server whose `hello` states another clock than `$$NOW`. With FerretDB these are the clocks of two
// processes, which may run on two machines.

#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"

#include <colock/retry_policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace colock::testing {
namespace {

using document = mongo::detail::document;

/// Returns the reply to `hello` of a server whose clock is ahead.
document shifted(const document& reply, std::chrono::milliseconds ahead)
{
    document made;
    bson_copy_to_excluding_noinit(reply.get(), made.get(), "localTime", nullptr);
    bson_iter_t at;
    BOOST_TEST_REQUIRE(bson_iter_init_find(&at, reply.get(), "localTime"));
    bson_append_date_time(made.get(), "localTime", -1, bson_iter_date_time(&at) + ahead.count());
    return made;
}

struct shifted_hello : mongo_fixture
{
    void set_ahead(std::chrono::milliseconds ahead)
    {
        interceptor.on_hello([ahead](const document& reply) { return shifted(reply, ahead); });
    }
    [[nodiscard]] locker add_reader() { return add(options(mongodb_url(interceptor.port()))); }
    /// Checks that the observer was warned once, of this difference in milliseconds.
    void check_warning(std::int64_t difference, const std::string& direction) const
    {
        BOOST_TEST_REQUIRE(event_log->warnings.size() == 1U);
        const auto& text = event_log->warnings.front();
        const std::string before = "the clock in the server's hello is at least ";
        const auto number = text.find(before) + before.size();
        std::size_t size = 0;
        const auto stated = std::stoll(text.substr(number), &size);
        BOOST_TEST((stated <= difference && stated > difference - 60'000), text);
        BOOST_TEST(text.substr(number + size).starts_with(" ms " + direction), text);
    }

    /// The next command makes the client look for the primary again.
    void find_primary_again()
    {
        interceptor.on_command([is_first = true](const intercepting_proxy::request& what) mutable {
            return std::exchange(is_first, false)
                       ? document::from_json(R"({"ok":0,"errmsg":"not primary","code":10107})")
                       : what.carry_out();
        });
    }

    /// Uses each operation for which the client estimates the server's time.
    void check_operations()
    {
        const auto ours = add_reader();
        auto held = run(ours.acquire("held", {.ttl = 1min}));
        BOOST_TEST(run(ours.is_locked("held")));
        BOOST_TEST(run(ours.list()).size() == 1U);
        BOOST_TEST(run(held.is_locked()));
        run(held.extend(2min));
        BOOST_TEST(!run(ours.try_acquire("held")).has_value());
        BOOST_TEST(run(ours.purge()).empty());

        auto group = ours.group("g");
        run(group.acquire("member", {.ttl = 1min}));
        BOOST_TEST(run(group.release()).size() == 1U);

        BOOST_TEST(run(ours.break_lock("held")).size() == 1U);
        BOOST_TEST(!run(ours.is_locked("held")));
        check_expired(ours);
        run(ours.shutdown(5s));
    }
    /// Checks a lock whose lease is over.
    void check_expired(const locker& ours)
    {
        static_cast<void>(ask(
            R"({"update":"locks","updates":[{"q":{"_id":"held"},"u":{"$set":{"t":"old","x":{"$numberLong":"1"}}}}]})"));
        BOOST_TEST(!run(ours.is_locked("held")));
        BOOST_TEST(run(ours.list()).empty());
        BOOST_TEST(run(ours.purge()).size() == 1U);
    }

    intercepting_proxy interceptor{io, server->port()};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_hello_clock, shifted_hello, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(hello_that_is_behind_decides_about_no_lease)
{
    set_ahead(-1h);
    check_operations();
    check_warning(3'600'000, "behind");
}

BOOST_AUTO_TEST_CASE(hello_that_is_ahead_decides_about_no_lease)
{
    set_ahead(1h);
    check_operations();
    check_warning(3'600'000, "ahead");
}

BOOST_AUTO_TEST_CASE(reconnect_neither_uses_hello_nor_warns_again)
{
    // A server that states no process is checked again.
    for (const bool is_checked_again : {false, true}) {
        event_log->warnings.clear();
        interceptor.on_hello([=](const document& reply) {
            document made;
            bson_copy_to_excluding_noinit(shifted(reply, 1h).get(), made.get(), "topologyVersion", nullptr);
            const auto process = document::from_json(
                R"({"topologyVersion":{"processId":{"$oid":"000000000000000000000001"},"counter":0}})");
            if (!is_checked_again)
                bson_concat(made.get(), process.get());
            return made;
        });
        const auto ours = add_reader();
        std::uint64_t last_fence = 0;
        for (int i = 0; i < 3; ++i) {
            auto held = run(ours.acquire("k"));
            // The fence is the adapter's estimate of the server's clock.
            BOOST_TEST((last_fence == 0 || held.fence() < last_fence + 1'800'000));
            last_fence = held.fence();
            run(held.release(on_failure::raise));
            find_primary_again();
        }
        check_warning(3'600'000, "ahead");
        run(ours.shutdown(5s));
    }
}

BOOST_AUTO_TEST_CASE(clock_that_another_client_reads_at_the_same_moment_is_read_again)
{
    // The codes of MongoDB and of DocumentDB, and a reply without the document.
    for (const std::string raced : {R"({"ok":0,"errmsg":"raced","code":11000})",
             R"({"ok":0,"errmsg":"raced","code":9})", R"({"ok":1,"value":null})"})
    {
        bool is_first = true;
        interceptor.on_command([&, raced](const intercepting_proxy::request& what) {
            return what.text.find(R"("clock")") != std::string::npos && std::exchange(is_first, false)
                       ? document::from_json(raced)
                       : what.carry_out();
        });
        const auto ours = add_reader();
        auto held = run(ours.acquire("k", {.retry = retry_policy::never()}));
        BOOST_TEST(!is_first);
        interceptor.forward_all();
        run(held.release(on_failure::raise));
        run(ours.shutdown(5s));
    }
    BOOST_TEST(event_log->warnings.empty());
}

BOOST_AUTO_TEST_CASE(small_difference_costs_no_write)
{
    set_ahead(100ms);
    const auto ours = add_reader();
    auto held = run(ours.acquire("held"));
    int writes = 0;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        writes += what.command == "find" ? 0 : 1;
        return what.carry_out();
    });
    BOOST_TEST(run(ours.is_locked("held")));
    BOOST_TEST(writes == 0);
    interceptor.forward_all();
    run(held.release(on_failure::raise));
    BOOST_TEST(event_log->warnings.empty());
    run(ours.shutdown(5s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
