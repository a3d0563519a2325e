// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"
#include "support/virtual_fixture.hpp"
#include "two_members.hpp"

#include <colock/retry_policy.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using namespace std::string_literals;
using document = mongo::detail::document;

/// Code of FerretDB 2 and DocumentDB in place of MongoDB's code 66.
constexpr int ferretdb_code = 33685634;

/// \param begin_at index of the first write error whose code is replaced
document with_code(const document& reply, int code, std::size_t begin_at = 0)
{
    constexpr std::string_view known = R"("code" : 66)";
    auto text = reply.to_json();
    std::size_t at = text.find(known);
    if (at == std::string::npos)
        return document::from_json(text);
    for (std::size_t i = 0; at != std::string::npos; ++i) {
        const auto shown = i < begin_at ? std::string(known) : R"("code" : )" + std::to_string(code);
        text.replace(at, known.size(), shown);
        at = text.find(known, at + shown.size());
    }
    return document::from_json(text);
}

/// Replaces, in all replies, the code with which the server fails a statement that must change nothing.
void translate(intercepting_proxy& server, int code, std::size_t begin_at = 0)
{
    server.on_command(
        [=](const intercepting_proxy::request& what) { return with_code(what.carry_out(), code, begin_at); });
}

void check_is_foreign(const error& refused)
{
    BOOST_TEST((refused.code() == errc::misconfigured_backend), refused.what());
    BOOST_TEST(std::string(refused.what()).find("another program's") != std::string::npos, refused.what());
}

struct one_server : mongo_fixture
{
    mongo::options impatient()
    {
        auto how = options(mongodb_url(interceptor.port()));
        how.operation_timeout = 5s;
        return how;
    }

    intercepting_proxy interceptor{io, server->port()};
};

/// Replies to a command that changes a lock, after it was carried out, with an error that does not tell the outcome.
/// \param times how often
void fail_after_execution(intercepting_proxy& server, const std::string& code, int times = 1)
{
    server.on_command([=, left = times](const intercepting_proxy::request& what) mutable {
        auto reply = what.carry_out();
        if ((what.command != "findAndModify" && what.command != "update") || left == 0)
            return reply;
        --left;
        return document::from_json(R"({"ok":0,"errmsg":"out of luck")" + code + '}');
    });
}

/// An error without a code, and InternalError, UnknownError, OperationFailed and ProtocolError.
const std::vector codes_without_an_outcome{""s, R"(,"code":1)"s, R"(,"code":8)"s, R"(,"code":96)"s, R"(,"code":17)"s};

/// Uses exclusive and shared locks, alone and in batches, and a key whose document belongs to another program.
void use_all(mongo_fixture& with, const locker& locks)
{
    static_cast<void>(
        with.ask(R"({"update":"locks","updates":[{"q":{"_id":"foreign"},"u":{"$set":{"total":3}},"upsert":true}]})"));
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        for (const auto& keys : {std::vector{"a"s}, {"b"s, "foreign"s, "a"s, "c"s}, {"foreign"s}}) {
            std::vector<running<lock>> asked;
            for (const auto& key : keys)
                asked.push_back(start(with.io, locks.acquire(key, {.mode = mode})));
            std::vector<lock> held;
            for (std::size_t i = 0; i < keys.size(); ++i) {
                if (keys[i] != "foreign")
                    held.push_back(asked[i].get(with.io));
                else if (const auto refused =
                             thrown_by<create_error>([&] { static_cast<void>(asked[i].get(with.io)); }))
                    check_is_foreign(*refused);
                else
                    BOOST_ERROR("a document of another program was taken for a lock");
            }
            std::vector<running<void>> given;
            for (auto& each : held)
                given.push_back(start(with.io, each.release(on_failure::raise)));
            for (auto& each : given)
                each.get(with.io);
        }
    }
    auto held = with.run(locks.acquire("a"));
    BOOST_TEST(!with.run(locks.try_acquire("a")).has_value());
    with.run(held.extend(1min));
    with.run(held.release(on_failure::raise));
    BOOST_TEST(holders_at(with.server->port()).empty());
    BOOST_TEST(locks.stats().settling == 0U);
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_codes, one_server, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(server_with_a_code_of_its_own_is_used_in_full)
{
    translate(interceptor, ferretdb_code);
    use_all(*this, add(options(mongodb_url(interceptor.port()))));
}

/// FerretDB 2 reports InternalError for a findAndModify that fails.
BOOST_AUTO_TEST_CASE(server_that_reports_another_code_for_single_commands_is_used_in_full)
{
    interceptor.on_command([](const intercepting_proxy::request& what) {
        return with_code(what.carry_out(), what.command == "findAndModify" ? 1 : ferretdb_code);
    });
    use_all(*this, add(impatient()));
}

BOOST_AUTO_TEST_CASE(code_with_another_meaning_is_not_accepted,
    *boost::unit_test::precondition(not_ferretdb("code 66, which this test replaces")))
{
    // The codes of a conflict, an interruption, a denied user, a timeout, operands of other types, a validator, and of
    // errors of any kind.
    for (const int code : {112, 11601, 13, 50, 14, 121, 1, 8}) {
        translate(interceptor, code);
        const auto refused = thrown_by<create_error>(
            [&] { static_cast<void>(run(add(impatient()).acquire("k", {.retry = retry_policy::never()}))); });
        BOOST_TEST(refused.has_value(), code);
    }
    BOOST_TEST(holders_at(server->port()).empty());
}

BOOST_AUTO_TEST_CASE(acquire_that_inserts_a_document_at_once_with_another_is_repeated)
{
    const auto ours = add(impatient());
    run(run(ours.acquire("warm")).release(on_failure::raise));
    int left = 2;
    // DocumentDB's error of an upsert that finds the document inserted by another client meanwhile.
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (what.command != "findAndModify" || left == 0)
            return what.carry_out();
        --left;
        return document::from_json(
            R"({"ok":0,"code":9,"errmsg":"The $$NOW operator cannot be used within this specific context."})");
    });
    auto held = run(ours.try_acquire("k"));
    BOOST_TEST(left == 0);
    BOOST_TEST_REQUIRE(held.has_value());
    run(held->release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(server_that_cannot_parse_any_command_is_not_reported_as_a_busy_lock)
{
    const auto ours = add(impatient());
    run(run(ours.acquire("warm")).release(on_failure::raise));
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        return what.command == "findAndModify" ? document::from_json(R"({"ok":0,"code":9,"errmsg":"out of luck"})")
                                               : what.carry_out();
    });
    const auto failed = thrown_by<create_error>([&] { static_cast<void>(run(ours.try_acquire("k"))); });
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST((failed->code() == errc::unavailable), failed->what());
    BOOST_TEST(std::string(failed->what()).find("code 9") != std::string::npos, failed->what());
}

BOOST_AUTO_TEST_CASE(acquire_that_fails_after_its_execution_leaves_no_lock)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    run(run(ours.acquire("warm")).release(on_failure::raise));
    for (const auto& code : codes_without_an_outcome) {
        BOOST_TEST_CONTEXT(code)
        {
            for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
                fail_after_execution(interceptor, code);
                const auto failed = thrown_by<create_error>(
                    [&] { static_cast<void>(run(ours.try_acquire("k", {.ttl = 0s, .mode = mode}))); });
                BOOST_TEST_REQUIRE(failed.has_value());
                BOOST_TEST((failed->code() == errc::outcome_unknown), failed->what());
                BOOST_TEST(std::string(failed->what()).find("out of luck") != std::string::npos, failed->what());
                until([&] { return ours.stats().settling == 0; });
                BOOST_TEST(ours.stats().unproven == 0U);
                BOOST_TEST(holders_at(server->port()).empty());
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(adopt_that_fails_after_its_execution_is_repeated)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    for (const auto& code : codes_without_an_outcome) {
        const auto ticket = run(run(ours.acquire("k")).detach());
        fail_after_execution(interceptor, code);
        run(run(ours.adopt(ticket, {.ttl = 0s})).release(on_failure::raise));
        until([&] { return ours.stats().settling == 0; });
        BOOST_TEST(holders_at(server->port()).empty());
    }
}

BOOST_AUTO_TEST_CASE(release_and_extension_that_fail_after_their_execution_are_repeated)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    for (const auto& code : codes_without_an_outcome) {
        auto held = run(ours.acquire("k"));
        fail_after_execution(interceptor, code);
        COLOCK_THROWS(error, errc::outcome_unknown, run(held.extend(1min)));
        run(held.extend(2min));
        fail_after_execution(interceptor, code);
        COLOCK_THROWS(release_error, errc::outcome_unknown, run(held.release(on_failure::raise)));
        until([&] { return ours.stats().settling == 0; });
        BOOST_TEST(holders_at(server->port()).empty());
    }
}

BOOST_AUTO_TEST_CASE(waiter_survives_errors_without_an_outcome_and_warns_of_each_code_once)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    run(run(ours.acquire("warm")).release(on_failure::raise));
    for (const auto& code : codes_without_an_outcome) {
        fail_after_execution(interceptor, code, 3);
        run(run(ours.acquire("k", {.retry = retry_policy::fixed(1ms)})).release(on_failure::raise));
    }
    interceptor.forward_all();
    until([&] { return ours.stats().settling == 0; });
    BOOST_TEST(holders_at(server->port()).empty());
    BOOST_TEST(event_log->warnings.size() == codes_without_an_outcome.size());
    BOOST_TEST(event_log->warned_of("(no code: out of luck)"));
    BOOST_TEST(event_log->warned_of("(code 8: out of luck)"));
}

/// A statement of a batch may fail after it was carried out, too.
BOOST_AUTO_TEST_CASE(statement_with_an_error_without_an_outcome_leaves_no_lock)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    run(run(ours.acquire("warm")).release(on_failure::raise));
    for (const auto& code : codes_without_an_outcome) {
        interceptor.on_command([&, is_first = true](const intercepting_proxy::request& what) mutable {
            auto reply = what.carry_out();
            return what.command == "update" && std::exchange(is_first, false)
                       ? document::from_json(
                             R"({"ok":1,"n":0,"writeErrors":[{"index":0,"errmsg":"out of luck")" + code + "}]}")
                       : std::move(reply);
        });
        COLOCK_THROWS(create_error, errc::outcome_unknown,
            static_cast<void>(run(ours.acquire("k", {.ttl = 0s, .retry = retry_policy::never()}))));
        until([&] { return ours.stats().settling == 0; });
        BOOST_TEST(holders_at(server->port()).empty());
    }
}

BOOST_AUTO_TEST_CASE(error_without_an_outcome_in_the_check_is_reported_and_the_check_is_repeated)
{
    for (const std::string command : {"listCollections", "listIndexes", "findAndModify", "update"}) {
        for (const auto& code : codes_without_an_outcome) {
            if (code.ends_with("17"))
                continue;
            BOOST_TEST_CONTEXT(command << code)
            {
                event_log->warnings.clear();
                int times = 0;
                interceptor.on_command([&](const intercepting_proxy::request& what) {
                    if (what.command != command)
                        return what.carry_out();
                    ++times;
                    return document::from_json(R"({"ok":0,"errmsg":"out of luck")" + code + '}');
                });
                const auto ours = add(options(mongodb_url(interceptor.port())));
                auto acquired = start(io, ours.acquire("k", {.retry = retry_policy::forever()}));
                until([&] { return times >= 2; });
                BOOST_TEST(event_log->warnings.size() == 1U);
                BOOST_TEST(event_log->warned_of("out of luck"));
                interceptor.forward_all();
                run(acquired.get(io).release(on_failure::raise));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(code_of_the_check_decides_whether_an_error_is_reported,
    *boost::unit_test::precondition(not_ferretdb("code 66, which this test replaces")))
{
    // The code 66 explains nothing at a server with another code.
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        const bool reads_clock = what.text.find(R"("clock")") != std::string::npos;
        return what.command == "findAndModify" && !reads_clock
                   ? document::from_json(R"({"ok":0,"code":66,"errmsg":"out of luck"})")
                   : with_code(what.carry_out(), ferretdb_code);
    });
    COLOCK_THROWS(create_error, errc::misconfigured_backend, run(add(impatient()).acquire("k")));
    BOOST_TEST(event_log->warned_of("out of luck"));
}

BOOST_AUTO_TEST_CASE(code_is_the_same_for_all_statements,
    *boost::unit_test::precondition(not_ferretdb("code 66, which this test replaces")))
{
    translate(interceptor, ferretdb_code, 1);
    COLOCK_THROWS(create_error, errc::misconfigured_backend, run(add(impatient()).acquire("k")));
    BOOST_TEST(holders_at(server->port()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(mongo_codes_of_members, two_members, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(each_server_has_a_code_of_its_own)
{
    translate(first, 66);
    translate(second, ferretdb_code);
    const auto ours = add(options(url()));
    use_all(*this, ours);
    const int met = event_log->reconnections;
    step_down();
    first.on_command([](const intercepting_proxy::request&) {
        return document::from_json(R"({"ok":0,"errmsg":"not primary","code":10107})");
    });
    run(run(ours.acquire("a")).release(on_failure::raise));
    BOOST_TEST(event_log->reconnections > met);
    use_all(*this, ours);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
