// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/faulty_proxy.hpp"
#include "support/print.hpp"

#include <colock/testing/remote_contract.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace colock::testing {
namespace {

/// A client whose requests a proxy can hold back until long after the client's connection was closed.
struct late_client
{
    explicit late_client(
        const mongo_fixture& env, asio::io_context& io, std::chrono::milliseconds operation_timeout = 20s)
        : link(env.server->port()), test_driver(io, mongo::make_adapter(io.get_executor(), how(operation_timeout)))
    {
        const auto warm = driver::exclusive("warm");
        // The first use may take longer than the timeout.
        while (test_driver.create(warm).status != create_status::granted)
            continue;
        test_driver.release_held(warm);
    }

    [[nodiscard]] mongo::options how(std::chrono::milliseconds operation_timeout) const
    {
        return {.url = mongodb_url(link.port()), .operation_timeout = operation_timeout, .idle_timeout = 10min};
    }
    /// Sends a create, and closes the connection while the proxy holds the request back.
    void send_late(const plain_claim_ptr& claim)
    {
        link.hold();
        auto creating = start(test_driver.io(), test_driver.backend().create(sent_now(claim)));
        run_until(test_driver.io(), [&] { return link.keeps("findAndModify") || link.keeps("updates"); });
        link.hang_up();
        const auto ended = creating.get(test_driver.io());
        BOOST_TEST_REQUIRE((ended.status == create_status::failed));
        BOOST_TEST(ended.error->code == errc::outcome_unknown);
    }

    faulty_proxy link;
    driver test_driver;
};

/// A second client is connected to the server directly.
struct late_request_fixture : mongo_fixture
{
    const driver direct{io, mongo::make_adapter(io.get_executor(), options())};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_late_requests, late_request_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(late_create_of_a_new_key_leaves_the_document_of_a_free_lock)
{
    for (const auto& claim : {driver::one_attempt("k"), driver::shared("k")}) {
        late_client client(*this, io, 2s);
        client.send_late(claim);
        contract::pass_real_time(io, 4s);
        client.link.deliver();
        const auto left = lock_document("k");
        BOOST_TEST((left.find("\"_id\"") == std::string::npos || left.find("\"x\"") != std::string::npos), left);
        // As if the key had been free for two days.
        static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"k"},"u":{"$set":{"p":{"$date":0}}}}]})"));
        BOOST_TEST(direct.purge().empty());
        BOOST_TEST(lock_document("k").find("\"_id\"") == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(late_create_leaves_no_mark_of_a_waiter)
{
    for (const auto& held : {driver::shared("k"), driver::exclusive("k")}) {
        late_client late_writer(*this, io, 2s);
        direct.grant(held);
        late_writer.send_late(driver::exclusive("k"));
        contract::pass_real_time(io, 4s);
        late_writer.link.deliver();
        const auto left = lock_document("k");
        for (const auto* const mark : {"\"w\"", "\"wb\"", "\"wt\" : \"", "\"d\""})
            BOOST_TEST(left.find(mark) == std::string::npos, left);
        if (held->mode() == lock_mode::shared) {
            const auto beside = driver::shared("k");
            direct.grant(beside);
            direct.release_held(beside);
        }
        direct.release_held(held);
    }
}

BOOST_AUTO_TEST_CASE(a_late_create_does_not_overrule_what_was_asked_later)
{
    for (const auto& claim : {driver::exclusive("k", 1min), driver::shared("k", 2, 1min)}) {
        late_client client(*this, io);
        client.send_late(claim);
        const auto fence = client.test_driver.grant(claim);
        BOOST_TEST((client.test_driver.extend(claim, 1h).status == extend_status::extended));
        client.link.deliver();
        const auto held = direct.inspect("k");
        BOOST_TEST_REQUIRE(held.size() == 1U);
        BOOST_TEST((held[0].remaining > 30min));
        BOOST_TEST(held[0].fence == fence);
        client.test_driver.check_held(claim);
        BOOST_TEST((client.test_driver.abandon(claim).status == release_status::released));
        BOOST_TEST(holders_at(server->port()).empty());
    }
}

BOOST_AUTO_TEST_CASE(purge_keeps_the_refusal_of_a_late_create)
{
    for (const auto& claim : {driver::exclusive("k"), driver::shared("k")}) {
        late_client client(*this, io);
        client.send_late(claim);
        BOOST_TEST((client.test_driver.abandon(claim).status == release_status::not_held));
        // As if the key had been free for two days.
        static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"k"},"u":{"$set":{"p":{"$date":0}}}}]})"));
        BOOST_TEST(direct.purge().empty());
        client.link.deliver();
        BOOST_TEST(holders_at(server->port()).empty());
    }
}

BOOST_AUTO_TEST_CASE(late_break_leaves_a_lock_granted_after_its_query)
{
    asio::io_context other_io;
    const driver others{other_io, mongo::make_adapter(other_io.get_executor(), options())};
    intercepting_proxy interceptor(io, server->port());
    const driver intercepted{io, mongo::make_adapter(io.get_executor(), options(mongodb_url(interceptor.port())))};
    BOOST_TEST(intercepted.break_key("k").empty());
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        const auto made = [&] { return mode == lock_mode::shared ? driver::shared("k") : driver::exclusive("k"); };
        const auto seen = made();
        const auto later = made();
        others.grant(seen);
        bool was_late = false;
        interceptor.on_command([&](const intercepting_proxy::request& what) {
            if (what.command == "findAndModify" && !std::exchange(was_late, true)) {
                others.release_held(seen);
                others.grant(later);
            }
            return what.carry_out();
        });
        BOOST_TEST(intercepted.break_key("k").empty());
        BOOST_TEST(was_late);
        others.check_held(later);
        interceptor.forward_all();
        const auto broken = intercepted.break_key("k");
        BOOST_TEST_REQUIRE(broken.size() == 1U);
        BOOST_TEST((broken[0].mode == mode));
        others.check_not_held(later);
    }
}

BOOST_AUTO_TEST_CASE(late_break_removes_only_the_shared_holders_found_by_its_query)
{
    asio::io_context other_io;
    const driver others{other_io, mongo::make_adapter(other_io.get_executor(), options())};
    intercepting_proxy interceptor(io, server->port());
    const driver intercepted{io, mongo::make_adapter(io.get_executor(), options(mongodb_url(interceptor.port())))};
    BOOST_TEST(intercepted.break_key("k").empty());
    const auto first = driver::shared("k");
    const auto second = driver::shared("k");
    const auto later = driver::shared("k");
    others.grant(first);
    others.grant(second);
    bool was_late = false;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (what.command == "findAndModify" && !std::exchange(was_late, true)) {
            others.release_held(first);
            others.grant(later);
        }
        return what.carry_out();
    });
    BOOST_TEST(intercepted.break_key("k").size() == 1U);
    interceptor.forward_all();
    others.check_not_held(second);
    others.check_held(later);
    others.release_held(later);
}

BOOST_AUTO_TEST_CASE(break_with_an_unanswered_query_is_unavailable)
{
    intercepting_proxy interceptor(io, server->port());
    auto how = options(mongodb_url(interceptor.port()));
    how.operation_timeout = 5s;
    const driver intercepted{io, mongo::make_adapter(io.get_executor(), how)};
    BOOST_TEST(intercepted.break_key("k").empty());
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (what.command == "find")
            throw std::runtime_error("the connection ends");
        return what.carry_out();
    });
    failure_ptr why;
    intercepted.backend().start_listing({.action = listing_action::break_key, .filter = {.key = "k"}},
        [&](list_outcome outcome) { why = std::move(outcome.error); });
    run_until(io, [&] { return why != nullptr; });
    BOOST_TEST((why->code == errc::unavailable), why->detail);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
