// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Tests of another server that answers at the address of the one that was checked: after an upgrade, or behind a
// virtual address.

#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"
#include "support/faulty_proxy.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using document = mongo::detail::document;

/// The data by which a server identifies itself.
struct stated_identity
{
    /// Empty: not stated.
    std::string process = "000000000000000000000001";
    std::string name = "a:1";
    int max_wire_version = 21;
};

document with_identity(const document& reply, const stated_identity& stated)
{
    document made;
    bson_copy_to_excluding_noinit(reply.get(), made.get(), "topologyVersion", "me", "maxWireVersion", nullptr);
    const auto process = stated.process.empty()
                             ? std::string()
                             : R"(,"topologyVersion":{"processId":{"$oid":")" + stated.process + R"("},"counter":0})";
    const auto fields = document::from_json(R"({"me":")" + stated.name + R"(","maxWireVersion":)" +
                                            std::to_string(stated.max_wire_version) + process + '}');
    bson_concat(made.get(), fields.get());
    return made;
}

struct replaced_server : mongo_fixture
{
    replaced_server()
    {
        interceptor.on_hello([this](const document& reply) { return with_identity(reply, stated); });
        interceptor.on_command([this](const intercepting_proxy::request& what) {
            if (what.text.find(R"("check")") != std::string::npos)
                ++(what.command == "findAndModify" ? single_checks : batch_checks);
            auto text = what.carry_out().to_json();
            constexpr std::string_view known = R"("code" : 66)";
            for (auto at = text.find(known); at != std::string::npos; at = text.find(known, at + 1))
                text.replace(at, known.size(), R"("code" : )" + std::to_string(code));
            return document::from_json(text);
        });
        use();
        BOOST_TEST_REQUIRE(single_checks > 0);
        forget_checks();
    }

    void use() { run(run(ours.acquire("k")).release(on_failure::raise)); }
    void reconnect()
    {
        link.refuse(true);
        link.refuse(false);
        use();
    }
    void forget_checks() { single_checks = batch_checks = 0; }

    stated_identity stated;
    /// Number with which the server refuses a statement that must change nothing.
    int code = 33685634;
    /// Number of commands that a whole check sends alone.
    int single_checks = 0;
    /// Number of updates of checks.
    int batch_checks = 0;
    /// Limits that a slow machine does not reach, because each command makes a connection to the server.
    [[nodiscard]] mongo::options patient() const
    {
        auto how = options(mongodb_url(link.port()));
        how.operation_timeout = how.connect_timeout = 1min;
        return how;
    }

    intercepting_proxy interceptor{io, server->port()};
    faulty_proxy link{interceptor.port()};
    const locker ours = add(patient());
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_replaced_servers, replaced_server, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(same_process_is_not_checked_again)
{
    reconnect();
    BOOST_TEST(batch_checks == 0);
    BOOST_TEST(single_checks == 0);
}

BOOST_AUTO_TEST_CASE(restarted_server_is_asked_for_its_number_only)
{
    stated.process = "000000000000000000000002";
    reconnect();
    BOOST_TEST(batch_checks == 1);
    BOOST_TEST(single_checks == 0);
}

BOOST_AUTO_TEST_CASE(server_that_states_no_process_is_asked_for_its_number_at_each_reconnect)
{
    stated.process.clear();
    for (int i = 0; i < 2; ++i) {
        forget_checks();
        reconnect();
        BOOST_TEST(batch_checks == 1);
        BOOST_TEST(single_checks == 0);
    }
}

BOOST_AUTO_TEST_CASE(server_of_another_kind_is_checked_in_full,
    *boost::unit_test::precondition(not_ferretdb("code 66, which this test replaces")))
{
    const auto check_replaced = [&](const char* what) {
        forget_checks();
        reconnect();
        BOOST_TEST(single_checks > 0, what);
    };
    stated.name = "b:1";
    check_replaced("another name");
    stated.max_wire_version = 25;
    check_replaced("another version");
    stated.process = "000000000000000000000002";
    code = 66;
    check_replaced("another number");
}

BOOST_AUTO_TEST_CASE(each_new_connection_must_lead_to_the_server_that_was_checked)
{
    std::vector<lock> held;
    for (const auto* const key : {"a", "b", "c", "d", "e", "f"})
        held.push_back(run(ours.acquire(key, {.ttl = 10min})));
    stated.max_wire_version = 25;
    // Commands at the same time need further connections.
    std::vector<running<void>> extended;
    for (auto& each : held)
        extended.push_back(start(io, each.extend(20min)));
    // The primary is found again. Commands that are in flight meanwhile have an unknown outcome.
    for (auto& each : extended) {
        try {
            each.get(io);
        } catch (const extend_error& failed) {
            BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
        }
    }
    use();
    BOOST_TEST(single_checks > 0);
    for (auto& each : held)
        run(each.release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
