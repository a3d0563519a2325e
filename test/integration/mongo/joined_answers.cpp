// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "go_between.hpp"
#include "joined_scene.hpp"
#include "support/driver.hpp"
#include "support/rig.hpp"

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

std::int64_t done_by(const document& reply)
{
    bson_iter_t found;
    return bson_iter_init_find(&found, reply.get(), "n") ? bson_iter_as_int64(&found) : 0;
}

document said(std::int64_t done, const std::string& more)
{
    return document::from_json(R"({"n":)" + std::to_string(done) + R"(,"nModified":1,"ok":1)" + more + '}');
}

/// The server does what it is asked, and something else is heard of it.
struct joined_answers : joined_scene
{
    joined_answers()
    {
        link.lead_to(between.port());
        link.refuse(true);
        link.refuse(false);
        run(run(ours.acquire("warm")).release(on_failure::raise));
    }

    /// Of all updates that several have joined.
    void say_of_updates(std::function<document(document)> instead)
    {
        between.say([this, instead = std::move(instead)](const go_between::request& what) {
            auto reply = what.carry_out();
            if (what.command != "update")
                return reply;
            ++updates;
            return instead(std::move(reply));
        });
    }
    /// Those that travel alone are granted.
    void check_all_are_unknown(const std::function<document(document)>& instead)
    {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            say_of_updates(instead);
            auto asked = ask_for_all({.mode = mode, .retry = retry_policy::never()});
            until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
            between.be_honest();
            BOOST_TEST(count_unknown(std::move(asked)) >= crowd - 1);
            auto held = take_all({.mode = mode});
            say_of_updates(instead);
            auto given = give_back(held);
            until([&] { return std::ranges::all_of(given, [](const auto& each) { return each.done(); }); });
            between.be_honest();
            BOOST_TEST(count_failed(std::move(given)) >= crowd - 1);
            check_all_are_free();
        }
    }
    std::size_t count_failed(std::vector<running<void>> given)
    {
        std::size_t failed = 0;
        for (auto& each : given) {
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
        between.say([this](const go_between::request& what) {
            ++commands[std::string(what.command)];
            return what.carry_out();
        });
    }

    int updates = 0;
    std::map<std::string, int> commands;
    go_between between{io, server->port()};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_joined_answers, joined_answers, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(what_has_failed_as_a_whole_is_unknown_to_all_who_joined)
{
    // 1, 8 and 146: a server fails without a name for it, or has no memory for the rest.
    for (const auto* const code : {"112", "433", "50", "237", "1", "8", "146"})
        check_all_are_unknown([&](const document&) {
            return document::from_json(R"({"ok":0,"errmsg":"not now","code":)" + std::string(code) + '}');
        });
}

BOOST_AUTO_TEST_CASE(a_batch_of_a_user_without_the_right_for_it_has_changed_nothing)
{
    between.say([](const go_between::request& what) {
        return what.command == "update" ? document::from_json(R"({"ok":0,"errmsg":"not authorized","code":13})")
                                        : what.carry_out();
    });
    auto asked = ask_for_all();
    for (auto& each : asked)
        COLOCK_THROWS(create_error, errc::access_denied, static_cast<void>(each.get(io)));
    between.be_honest();
    BOOST_TEST(ours.stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(a_group_that_was_extended_before_a_failure_is_unknown)
{
    const driver some(io, mongo::make_adapter(io.get_executor(), options(mongodb_url(between.port()))));
    auto members = theirs.group("g");
    run(members.acquire("k"));
    // The check at the first connection is over then.
    BOOST_TEST(some.list().size() == 1U);
    bool extended = false;
    between.say([&](const go_between::request& what) {
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
    const auto outcome = some.group("g", group_action::extend, 1h);
    between.be_honest();
    BOOST_TEST(extended);
    BOOST_TEST_REQUIRE(!!outcome.error);
    BOOST_TEST((outcome.error->code == errc::outcome_unknown), outcome.error->detail);
    BOOST_TEST(run(members.release()).size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_no_majority_has_confirmed_is_unknown_to_all_who_joined)
{
    check_all_are_unknown([](const document& reply) {
        return said(done_by(reply), R"(,"writeConcernError":{"code":64,"errmsg":"waiting timed out"})");
    });
}

BOOST_AUTO_TEST_CASE(an_answer_that_does_not_tell_of_each_is_unknown_to_all_who_joined)
{
    check_all_are_unknown([](const document& reply) { return said(done_by(reply) - 1, ""); });
    check_all_are_unknown([](const document& reply) { return said(done_by(reply) + 1, ""); });
    check_all_are_unknown([](const document&) { return document::from_json(R"({"ok":1})"); });
    for (const auto* const which : {R"("index":70,)", R"("index":-1,)", ""})
        check_all_are_unknown([&](const document& reply) {
            return said(done_by(reply) - 1,
                std::string(R"(,"writeErrors":[{)") + which + R"("code":11000,"errmsg":"duplicate"}])");
        });
}

BOOST_AUTO_TEST_CASE(what_the_server_says_of_one_concerns_no_other)
{
    const auto of_second = [](const std::string& code) {
        return [=](const document& reply) {
            return said(
                done_by(reply) - 1, R"(,"writeErrors":[{"index":1,"code":)" + code + R"(,"errmsg":"not this one"}])");
        };
    };
    say_of_updates(of_second("50"));
    auto asked = ask_for_all({.retry = retry_policy::never()});
    until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
    between.be_honest();
    BOOST_TEST(count_unknown(std::move(asked)) == static_cast<std::size_t>(updates));
    // One that another was faster with asks alone.
    say_of_updates(of_second("11000"));
    auto held = take_all({.retry = retry_policy::never()});
    between.be_honest();
    BOOST_TEST(holders_at(server->port()).size() == crowd);
    release_all(held);
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(what_a_server_has_not_begun_goes_to_the_next)
{
    int heard = 0;
    between.say([&](const go_between::request& what) {
        if (what.command != "update" || ++heard > 1)
            return what.carry_out();
        return document::from_json(R"({"ok":0,"errmsg":"not primary","code":10107,"codeName":"NotWritablePrimary"})");
    });
    // What is under way elsewhere at that moment ends with its connection.
    BOOST_TEST(count_unknown(ask_for_all({.retry = retry_policy::never()})) < crowd - 1);
    auto held = take_all();
    heard = 0;
    BOOST_TEST(count_failed(give_back(held)) < crowd - 1);
    BOOST_TEST(heard > 1);
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(whose_document_is_not_among_those_that_were_read_is_unknown)
{
    const auto show_nothing = [](const go_between::request& what) {
        auto reply = what.carry_out();
        return what.command == "find"
                   ? document::from_json(R"({"cursor":{"firstBatch":[],"id":0,"ns":"colock.locks"},"ok":1})")
                   : std::move(reply);
    };
    between.say(show_nothing);
    auto asked = ask_for_all({.mode = lock_mode::shared, .retry = retry_policy::never()});
    until([&] { return std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
    between.be_honest();
    BOOST_TEST(count_unknown(std::move(asked)) >= crowd - 1);
    auto held = take_all();
    between.say(show_nothing);
    release_all(held);
    between.be_honest();
    check_all_are_free();
}

BOOST_AUTO_TEST_CASE(who_has_a_lock_alone_knows_it_and_its_fence_without_a_look)
{
    count_commands();
    auto held = take_all();
    BOOST_TEST(commands["update"] > 0);
    for (const auto& each : run(theirs.list()))
        BOOST_TEST(each.fence == std::ranges::find(held, each.key, &lock::key)->fence());
    release_all(held);
    BOOST_TEST(commands["find"] == 0);
    BOOST_TEST(commands["findAndModify"] == 0);
    // Without company, too; a single attempt, that may be told who is in its way, asks by itself.
    commands.clear();
    run(run(ours.acquire("0")).release(on_failure::raise));
    BOOST_TEST(commands["update"] == 2);
    commands.clear();
    run(run(ours.try_acquire("0"))->release(on_failure::raise));
    BOOST_TEST(commands["findAndModify"] == 1);
    BOOST_TEST(commands["update"] == 1);
    BOOST_TEST(commands["find"] == 0);
    between.be_honest();
}

/// Else its locker would go on for ever without those of others.
BOOST_AUTO_TEST_CASE(a_release_of_what_is_waited_for_here_says_whether_others_wait)
{
    constexpr int rounds = 40;
    int grants = 0, unaware = 0;
    between.say([&](const go_between::request& what) {
        const bool releases = what.command == "update" && what.text.find("\"g\"") != std::string::npos;
        unaware += releases && grants < rounds ? 1 : 0;
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
    between.be_honest();
    BOOST_TEST(unaware == 0);
}

BOOST_AUTO_TEST_CASE(a_fence_that_is_not_above_the_last_is_not_given)
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

/// What it says of its fence would not hold later: others may have been given higher ones, and be forgotten.
BOOST_AUTO_TEST_CASE(one_that_names_its_fence_may_come_half_a_minute_late_however_long_an_operation_may_take)
{
    auto how = options(mongodb_url(between.port()));
    how.operation_timeout = 1h;
    const auto patient = add(how);
    run(run(patient.acquire("warm")).release(on_failure::raise));
    std::string statement;
    between.say([&](const go_between::request& what) {
        if (statement.empty() && what.command == "update")
            statement = what.text;
        return what.carry_out();
    });
    const auto held = run(patient.acquire("k"));
    between.be_honest();
    BOOST_TEST(statement.find(std::to_string(held.fence())) != std::string::npos, statement);
    BOOST_TEST(statement.find(std::to_string(held.fence() + 30'000)) != std::string::npos, statement);
}

BOOST_AUTO_TEST_CASE(a_conflict_of_one_that_travels_without_company_is_none)
{
    int conflicts = 0;
    between.say([&](const go_between::request& what) {
        if (what.command != "update" || ++conflicts > 1)
            return what.carry_out();
        return document::from_json(R"({"ok":0,"errmsg":"not now","code":112})");
    });
    run(run(ours.acquire("0", {.retry = retry_policy::never()})).release(on_failure::raise));
    BOOST_TEST(conflicts > 1);
    between.be_honest();
}

BOOST_AUTO_TEST_CASE(a_release_on_either_side_of_the_look_wakes_whoever_waits)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        // One who is alone looks by asking anew.
        const std::string look = mode == lock_mode::exclusive ? "findAndModify" : "find";
        for (const bool before : {true, false}) {
            const auto taken = run(theirs.acquire("2", {.ttl = 1h}));
            bool released = false;
            between.say([&](const go_between::request& what) {
                const auto release = [&] {
                    static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"2"},
                        "u":{"$set":{"t":null,"x":{"$numberLong":"0"},"o":null},"$inc":{"g":1}}}]})"));
                };
                const bool now = what.command == look && what.text.find("\"2\"") != std::string::npos &&
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
            between.be_honest();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
