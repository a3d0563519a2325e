// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Tests of replies that no server sends. They must not reach the driver, which some of them would crash.

#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/retry_policy.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

using document = mongo::detail::document;

/// Makes a reply invalid.
struct mangler
{
    const char* what;
    void (*change)(std::string& reply);
};

void set_length(std::string& reply)
{
    reply[0] = static_cast<char>(reply.size() % 256);
    reply[1] = static_cast<char>(reply.size() / 256 % 256);
}

/// Adds an array that contains a text with a length of 99.
void add_corrupt_field(std::string& reply)
{
    using namespace std::string_literals;
    const bool is_op_reply = reply[12] == '\1';
    const std::size_t document_at = is_op_reply ? 36 : 21;
    const auto field = "\x04hosts\0\x0c\0\0\0\x02\x30\0\x63\0\0\0\0"s;
    reply.insert(reply.size() - 1, field);
    set_length(reply);
    auto inner = reply.substr(document_at);
    set_length(inner);
    reply.replace(document_at, inner.size(), inner);
}

const std::vector<mangler> manglers{
    {"the reply to another request", [](std::string& reply) { ++reply[8]; }},
    {"a compressed message", [](std::string& reply) { reply.replace(12, 2, "\xdc\x07"); }},
    {"an impossible length", [](std::string& reply) { reply[3] = '\x7f'; }},
    {"no section", [](std::string& reply) { set_length(reply = reply.substr(0, 20)); }},
    {"an unknown flag", [](std::string& reply) { reply[16] = static_cast<char>(reply[16] | 4); }},
    {"invalid BSON", [](std::string& reply) { reply[reply.size() - 1] = 'x'; }},
    {"an inner document that is too long", &add_corrupt_field},
    {"bytes after the reply", [](std::string& reply) { reply += "more"; }},
};

struct replying_server : mongo_fixture
{
    /// Changes the next replies to these commands.
    void mangle(const mangler& by, std::vector<std::string> commands, int times = 1)
    {
        interceptor.on_reply([=, this, left = times](std::string_view command, std::string& reply) mutable {
            if (std::ranges::find(commands, command) == commands.end() || left == 0)
                return;
            --left;
            ++mangled;
            by.change(reply);
        });
    }

    /// Number of replies that were changed.
    int mangled = 0;
    intercepting_proxy interceptor{io, server->port()};
    const locker ours = add(options(mongodb_url(interceptor.port())));
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_replies, replying_server, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(acquire_with_a_malformed_reply_has_an_unknown_outcome_and_leaves_no_lock)
{
    run(run(ours.acquire("warm")).release(on_failure::raise));
    for (const auto& each : manglers) {
        BOOST_TEST_CONTEXT(each.what)
        {
            mangle(each, {"findAndModify", "update"});
            COLOCK_THROWS(create_error, errc::outcome_unknown,
                static_cast<void>(run(ours.acquire("k", {.ttl = 0s, .retry = retry_policy::never()}))));
            until([&] { return ours.stats().settling == 0; });
            BOOST_TEST(holders_at(server->port()).empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(batch_with_a_malformed_reply_has_an_unknown_outcome_and_leaves_no_lock)
{
    run(run(ours.acquire("warm")).release(on_failure::raise));
    for (const auto& each : manglers) {
        BOOST_TEST_CONTEXT(each.what)
        {
            mangled = 0;
            mangle(each, {"update"});
            std::vector<running<lock>> all;
            for (const std::string key : {"a", "b", "c", "d"})
                all.push_back(start(io, ours.acquire(key, {.ttl = 0s, .retry = retry_policy::never()})));
            int unknown_count = 0;
            for (auto& acquired : all) {
                const auto failed = thrown_by<create_error>([&] { run(acquired.get(io).release(on_failure::raise)); });
                unknown_count += failed && failed->code() == errc::outcome_unknown ? 1 : 0;
            }
            BOOST_TEST(mangled == 1);
            // The first operations may be sent alone.
            BOOST_TEST(unknown_count >= 2);
            until([&] { return ours.stats().settling == 0; });
            BOOST_TEST(holders_at(server->port()).empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(malformed_report_of_changes_opens_the_change_stream_again,
    *boost::unit_test::precondition(not_ferretdb("change streams")))
{
    // Number of malformed reports before the last change stream was opened.
    int mangled_before = 0;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (what.command == "aggregate")
            mangled_before = mangled;
        // The upstream server forgets a cursor together with the connection that opened it.
        if (what.command == "aggregate" || what.command == "getMore")
            return document::from_json(R"({"ok":1,"cursor":{"id":{"$numberLong":"4711"},"ns":"colock.locks",")" +
                                       std::string(what.command == "getMore" ? "nextBatch" : "firstBatch") +
                                       R"(":[]}})");
        return what.carry_out();
    });
    const auto theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    for (const auto& each : manglers) {
        BOOST_TEST_CONTEXT(each.what)
        {
            const int before = mangled;
            mangle(each, {"getMore"});
            until([&] { return mangled_before > before; });
        }
    }
    interceptor.on_reply(nullptr);
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(result_with_fields_of_other_types_has_an_unknown_outcome_and_leaves_no_lock)
{
    run(run(ours.acquire("warm")).release(on_failure::raise));
    for (const auto* const reply : {R"({"ok":0,"code":0,"errmsg":"x"})", R"({"ok":0,"code":"8","errmsg":"x"})",
             R"({"ok":null,"errmsg":"x"})", R"({"ok":1,"writeErrors":5})", R"({"ok":1,"writeConcernError":"x"})"})
    {
        BOOST_TEST_CONTEXT(reply)
        {
            interceptor.on_command([&, left = 1](const intercepting_proxy::request& what) mutable {
                auto fine = what.carry_out();
                const bool is_changed = (what.command == "findAndModify" || what.command == "update") && left > 0;
                left -= is_changed ? 1 : 0;
                return is_changed ? document::from_json(reply) : std::move(fine);
            });
            COLOCK_THROWS(create_error, errc::outcome_unknown,
                static_cast<void>(run(ours.acquire("k", {.ttl = 0s, .retry = retry_policy::never()}))));
            until([&] { return ours.stats().settling == 0; });
            BOOST_TEST(holders_at(server->port()).empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(malformed_greeting_is_a_failed_attempt_to_connect)
{
    for (const auto& each : manglers) {
        BOOST_TEST_CONTEXT(each.what)
        {
            mangle(each, {"hello", "isMaster", "ismaster"}, 1000);
            const auto other = add(options(mongodb_url(interceptor.port())));
            auto waiting = start(io, other.acquire("k", {.retry = retry_policy::forever()}));
            event_log->obstacle = {};
            until([&] { return event_log->obstacle == boost::system::errc::protocol_error; });
            interceptor.on_reply(nullptr);
            run(waiting.get(io).release(on_failure::raise));
        }
    }
}

BOOST_AUTO_TEST_CASE(checksum_and_optional_flags_of_a_reply_are_accepted)
{
    interceptor.on_reply([](std::string_view command, std::string& reply) {
        if (command != "findAndModify" && command != "update")
            return;
        reply[16] = '\1';
        reply[18] = '\1';
        reply += "\1\2\3\4";
        set_length(reply);
    });
    auto held = run(ours.acquire("k", {.retry = retry_policy::never()}));
    run(held.extend(1min));
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
