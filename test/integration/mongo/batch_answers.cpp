// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "batch_fixture.hpp"
#include "intercepting_proxy.hpp"
#include "support/driver.hpp"
#include "support/virtual_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using document = mongo::detail::document;

std::int64_t carried_out_count(const document& reply)
{
    bson_iter_t found;
    return bson_iter_init_find(&found, reply.get(), "n") ? bson_iter_as_int64(&found) : 0;
}

document update_reply(std::int64_t done, const std::string& more)
{
    return document::from_json(R"({"n":)" + std::to_string(done) + R"(,"nModified":1,"ok":1)" + more + '}');
}

/// The server carries out all commands, but the replies are changed.
struct changed_replies_fixture : batch_fixture
{
    changed_replies_fixture()
    {
        link.lead_to(interceptor.port());
        link.refuse(true);
        link.refuse(false);
        run(run(ours.acquire("warm")).release(on_failure::raise));
    }

    /// Changes the replies to all updates.
    void change_update_replies(std::function<document(document)> instead)
    {
        interceptor.on_command([this, instead = std::move(instead)](const intercepting_proxy::request& what) {
            auto reply = what.carry_out();
            if (what.command != "update")
                return reply;
            ++updates;
            return instead(std::move(reply));
        });
    }
    /// Checks that every operation of a batch ends with an unknown outcome. An operation that is sent alone may
    /// succeed.
    void check_all_are_unknown(const std::function<document(document)>& instead)
    {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            change_update_replies(instead);
            auto asked = start_acquires({.mode = mode, .retry = retry_policy::never()});
            until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
            interceptor.forward_all();
            BOOST_TEST(count_unknown(std::move(asked)) >= key_count - 1);
            auto held = take_all({.mode = mode});
            change_update_replies(instead);
            auto releasing = start_releases(held);
            until([&] { return std::ranges::all_of(releasing, [](const auto& each) { return each.done(); }); });
            interceptor.forward_all();
            BOOST_TEST(count_failed(std::move(releasing)) >= key_count - 1);
            check_all_are_free();
        }
    }
    std::size_t count_failed(std::vector<running<void>> releasing)
    {
        std::size_t failed = 0;
        for (auto& each : releasing) {
            try {
                each.get(io);
            } catch (const release_error& error) {
                BOOST_TEST((error.code() == errc::outcome_unknown), error.what());
                ++failed;
            }
        }
        until([&] { return ours.stats().settling == 0; });
        BOOST_TEST(ours.stats().unproven == 0U);
        return failed;
    }

    void count_commands()
    {
        commands.clear();
        interceptor.on_command([this](const intercepting_proxy::request& what) {
            ++commands[std::string(what.command)];
            return what.carry_out();
        });
    }

    int updates = 0;
    std::map<std::string, int> commands;
    intercepting_proxy interceptor{io, server->port()};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_batch_answers, changed_replies_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(failed_batch_leaves_every_outcome_unknown)
{
    // Codes 1, 8 and 146: the server fails with an unnamed error, or has no memory for the remaining statements.
    for (const auto* const code : {"112", "433", "50", "237", "1", "8", "146"})
        check_all_are_unknown([&](const document&) {
            return document::from_json(R"({"ok":0,"errmsg":"not now","code":)" + std::string(code) + '}');
        });
}

BOOST_AUTO_TEST_CASE(batch_without_permission_changes_nothing)
{
    interceptor.on_command([](const intercepting_proxy::request& what) {
        return what.command == "update" ? document::from_json(R"({"ok":0,"errmsg":"not authorized","code":13})")
                                        : what.carry_out();
    });
    auto asked = start_acquires();
    for (auto& each : asked)
        COLOCK_THROWS(create_error, errc::access_denied, static_cast<void>(each.get(io)));
    interceptor.forward_all();
    BOOST_TEST(ours.stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(group_extended_before_a_failure_reports_outcome_unknown)
{
    const driver by(io, mongo::make_adapter(io.get_executor(), options(mongodb_url(interceptor.port()))));
    auto members = theirs.group("g");
    run(members.acquire("k"));
    // After this command, the check of the server has ended.
    BOOST_TEST(by.list().size() == 1U);
    bool extended = false;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        const auto refused = [](int code) {
            return document::from_json(R"({"ok":0,"errmsg":"no","code":)" + std::to_string(code) + '}');
        };
        if (what.command == "find" && extended)
            return refused(13);
        if (what.command != "update" || what.text.find("confirm") != std::string::npos)
            return what.carry_out();
        static_cast<void>(what.carry_out());
        extended = true;
        return refused(112);
    });
    const auto outcome = by.group("g", group_action::extend, 1h);
    interceptor.forward_all();
    BOOST_TEST(extended);
    BOOST_TEST_REQUIRE(!!outcome.error);
    BOOST_TEST((outcome.error->code == errc::outcome_unknown), outcome.error->detail);
    BOOST_TEST(run(members.release()).size() == 1U);
}

BOOST_AUTO_TEST_CASE(batch_without_a_majority_leaves_every_outcome_unknown)
{
    check_all_are_unknown([](const document& reply) {
        return update_reply(
            carried_out_count(reply), R"(,"writeConcernError":{"code":64,"errmsg":"waiting timed out"})");
    });
}

BOOST_AUTO_TEST_CASE(incomplete_reply_of_a_batch_leaves_every_outcome_unknown)
{
    check_all_are_unknown([](const document& reply) { return update_reply(carried_out_count(reply) - 1, ""); });
    check_all_are_unknown([](const document& reply) { return update_reply(carried_out_count(reply) + 1, ""); });
    check_all_are_unknown([](const document&) { return document::from_json(R"({"ok":1})"); });
    for (const auto* const which : {R"("index":70,)", R"("index":-1,)", ""})
        check_all_are_unknown([&](const document& reply) {
            return update_reply(carried_out_count(reply) - 1,
                std::string(R"(,"writeErrors":[{)") + which + R"("code":11000,"errmsg":"duplicate"}])");
        });
}

BOOST_AUTO_TEST_CASE(error_of_one_statement_concerns_no_other)
{
    const auto of_second = [](const std::string& code) {
        return [=](const document& reply) {
            return update_reply(carried_out_count(reply) - 1,
                R"(,"writeErrors":[{"index":1,"code":)" + code + R"(,"errmsg":"not this one"}])");
        };
    };
    change_update_replies(of_second("50"));
    auto asked = start_acquires({.retry = retry_policy::never()});
    until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
    interceptor.forward_all();
    BOOST_TEST(count_unknown(std::move(asked)) == static_cast<std::size_t>(updates));
    // After a conflict, the operation is sent again as a command of its own.
    change_update_replies(of_second("11000"));
    auto held = take_all({.retry = retry_policy::never()});
    interceptor.forward_all();
    BOOST_TEST(holders_at(server->port()).size() == key_count);
    release_all(held);
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(batch_refused_by_a_former_primary_is_sent_again)
{
    int update_count = 0;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (what.command != "update" || ++update_count > 1)
            return what.carry_out();
        return document::from_json(R"({"ok":0,"errmsg":"not primary","code":10107,"codeName":"NotWritablePrimary"})");
    });
    // Commands on other connections may be lost together with their connections.
    BOOST_TEST(count_unknown(start_acquires({.retry = retry_policy::never()})) < key_count - 1);
    auto held = take_all();
    update_count = 0;
    BOOST_TEST(count_failed(start_releases(held)) < key_count - 1);
    BOOST_TEST(update_count > 1);
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(operation_with_a_missing_document_is_unknown)
{
    const auto show_nothing = [](const intercepting_proxy::request& what) {
        auto reply = what.carry_out();
        return what.command == "find"
                   ? document::from_json(R"({"cursor":{"firstBatch":[],"id":0,"ns":"colock.locks"},"ok":1})")
                   : std::move(reply);
    };
    interceptor.on_command(show_nothing);
    auto asked = start_acquires({.mode = lock_mode::shared, .retry = retry_policy::never()});
    until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
    interceptor.forward_all();
    BOOST_TEST(count_unknown(std::move(asked)) >= key_count - 1);
    auto held = take_all();
    interceptor.on_command(show_nothing);
    release_all(held);
    interceptor.forward_all();
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(exclusive_grant_needs_no_read_of_the_document)
{
    count_commands();
    auto held = take_all();
    BOOST_TEST(commands["update"] > 0);
    for (const auto& each : run(theirs.list()))
        BOOST_TEST(each.fence == std::ranges::find(held, each.key, &lock::key)->fence());
    release_all(held);
    BOOST_TEST(commands["find"] == 0);
    BOOST_TEST(commands["findAndModify"] == 0);
    // The same holds for an operation that is sent alone. A single attempt is sent as a command of its own, because it
    // reports the current holder.
    commands.clear();
    run(run(ours.acquire("0")).release(on_failure::raise));
    BOOST_TEST(commands["update"] == 2);
    commands.clear();
    run(run(ours.try_acquire("0"))->release(on_failure::raise));
    BOOST_TEST(commands["findAndModify"] == 1);
    BOOST_TEST(commands["update"] == 1);
    BOOST_TEST(commands["find"] == 0);
    interceptor.forward_all();
}

/// Without this read, the locker would hand over the lock among its own claims forever.
BOOST_AUTO_TEST_CASE(release_with_local_waiters_reads_whether_others_wait)
{
    constexpr int rounds = 40;
    int grants = 0, releases_without_read = 0;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        const bool releases = what.command == "update" && what.text.find("\"g\"") != std::string::npos;
        releases_without_read += releases && grants < rounds ? 1 : 0;
        return what.carry_out();
    });
    const auto work = [&]() -> asio::awaitable<void> {
        while (grants < rounds) {
            auto held = co_await ours.acquire("k");
            ++grants;
            co_await held.release(on_failure::raise);
        }
    };
    std::vector<running<void>> all;
    for (int i = 0; i < 3; ++i)
        all.push_back(start(io, work()));
    for (auto& each : all)
        each.get(io);
    interceptor.forward_all();
    BOOST_TEST(releases_without_read == 0);
}

BOOST_AUTO_TEST_CASE(fence_is_greater_than_the_last)
{
    auto held = take_all();
    release_all(held);
    const auto ahead = held.front().fence() + 3'600'000;
    static_cast<void>(
        ask(R"({"update":"locks","updates":[{"q":{"x":{"$exists":true}},"u":{"$set":{"f":{"$numberLong":")" +
            std::to_string(ahead) + R"("}}},"multi":true}]})"));
    for (auto next = ahead + 1; next < ahead + 3; ++next) {
        held = take_all();
        for (const auto& each : held)
            BOOST_TEST(each.fence() == next);
        release_all(held);
    }
}

/// A fence is a time of the server's clock, in milliseconds. After the expiry, the server refuses the statement,
/// because a higher fence may have been granted, and its document purged.
BOOST_AUTO_TEST_CASE(statement_with_a_fence_contains_an_expiry_half_a_minute_later)
{
    auto how = options(mongodb_url(interceptor.port()));
    how.operation_timeout = 1h;
    const auto patient = add(how);
    run(run(patient.acquire("warm")).release(on_failure::raise));
    std::string statement;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (statement.empty() && what.command == "update")
            statement = what.text;
        return what.carry_out();
    });
    const auto held = run(patient.acquire("k"));
    interceptor.forward_all();
    BOOST_TEST(statement.find(std::to_string(held.fence())) != std::string::npos, statement);
    BOOST_TEST(statement.find(std::to_string(held.fence() + 30'000)) != std::string::npos, statement);
}

BOOST_AUTO_TEST_CASE(conflict_of_a_single_operation_is_retried)
{
    int conflicts = 0;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        if (what.command != "update" || ++conflicts > 1)
            return what.carry_out();
        return document::from_json(R"({"ok":0,"errmsg":"not now","code":112})");
    });
    run(run(ours.acquire("0", {.retry = retry_policy::never()})).release(on_failure::raise));
    BOOST_TEST(conflicts > 1);
    interceptor.forward_all();
}

BOOST_AUTO_TEST_CASE(release_before_or_after_the_read_wakes_the_waiter)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        // An exclusive claim that was refused asks again with a command of its own.
        const std::string read_command = mode == lock_mode::exclusive ? "findAndModify" : "find";
        for (const bool before : {true, false}) {
            const auto taken = run(theirs.acquire("2", {.ttl = 1h}));
            bool released = false;
            interceptor.on_command([&](const intercepting_proxy::request& what) {
                const auto release = [&] {
                    static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"2"},
                        "u":{"$set":{"t":null,"x":{"$numberLong":"0"},"o":null},"$inc":{"g":1}}}]})"));
                };
                const bool now = what.command == read_command && what.text.find("\"2\"") != std::string::npos &&
                                 !std::exchange(released, true);
                if (now && before)
                    release();
                auto reply = what.carry_out();
                if (now && !before)
                    release();
                return reply;
            });
            auto held = take_all({.mode = mode, .retry = retry_policy::fixed(1h)});
            BOOST_TEST(released);
            release_all(held);
            interceptor.forward_all();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
