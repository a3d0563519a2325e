// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/virtual_fixture.hpp"

#include <string>
#include <vector>

namespace colock::testing {
namespace {

using namespace std::string_literals;

/// A server whose users each have a role of their own.
struct with_users : mongo_fixture
{
    with_users()
    {
        own.emplace(std::vector<std::string>{"--sync-on-commit"});
        server = &*own;
        // The role of docs/mongodb.md.
        create("app", R"("find","insert","update","remove","changeStream","createIndex")");
        create("reader", R"("find")");
        create("without_indexes", R"("find","insert","update","remove","changeStream")");
        create("stranger", R"("find","insert","update","remove","changeStream","createIndex")", "others");
        server->kill();
        server->start({"--auth"});
    }

    void create(const std::string& name, const std::string& actions, const std::string& database = "colock") const
    {
        static_cast<void>(ask(R"({"createRole":")" + name + R"(","privileges":[{"resource":{"db":")" + database +
                                  R"(","collection":"locks"},"actions":[)" + actions + R"(]}],"roles":[]})",
            database));
        static_cast<void>(ask(R"({"createUser":")" + name + R"(","pwd":"secret","roles":[{"role":")" + name +
                                  R"(","db":")" + database + "\"}]}",
            database));
    }
    locker add_as(const std::string& user, const std::string& source = "colock")
    {
        auto how = options(
            "mongodb://" + user + ":secret@127.0.0.1:" + std::to_string(server->port()) + "/?authSource=" + source);
        // A denial must be reported at once, not after this timeout.
        how.operation_timeout = 1h;
        return add(how);
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_rights, with_users,
    *boost::unit_test::precondition(has_mongodb) * boost::unit_test::precondition(not_ferretdb("roles of users")))

BOOST_AUTO_TEST_CASE(the_smallest_role_suffices)
{
    const auto theirs = add_as("app");
    const auto ours = add_as("app");
    const auto by = last_adapter;
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream && ours.stats().busy >= 2; });
    run(held.extend(1min));
    BOOST_TEST(run(held.is_locked()));
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    auto shared = run(ours.acquire("s", {.mode = lock_mode::shared, .max_holders = 2}));
    BOOST_TEST(!run(theirs.try_acquire("s")).has_value());
    BOOST_TEST(run(ours.list()).size() == 1U);
    BOOST_TEST(run(ours.purge()).empty());
    run(mongo::create_indexes(by));
    run(shared.extend(1min));
    run(shared.release(on_failure::raise));
    held = run(theirs.acquire("k"));
    BOOST_TEST(run(ours.break_lock("k")).size() == 1U);
    BOOST_TEST(event_log->warnings.empty());
}

BOOST_AUTO_TEST_CASE(user_without_permission_is_denied_at_once)
{
    for (const auto& by : {add_as("reader"), add_as("stranger", "others")}) {
        const auto refused = required_error<create_error>([&] { static_cast<void>(run(by.acquire("k"))); });
        BOOST_TEST((refused.code() == errc::access_denied), refused.what());
        const std::string text = refused.what();
        BOOST_TEST(text.find("grant find, insert, update and remove on the collection") != std::string::npos, text);
        BOOST_TEST(text.find("secret") == std::string::npos, text);
        BOOST_TEST(by.stats().settling == 0U);
    }
    // The operator finds the reason in the log, because the events of an acquire have only a code.
    BOOST_TEST(event_log->warned_of("grant find, insert, update and remove on the collection"));
    COLOCK_THROWS(error, errc::access_denied, run(add_as("reader").list()));
    COLOCK_THROWS(error, errc::access_denied, run(mongo::create_indexes(last_adapter)));
}

BOOST_AUTO_TEST_CASE(user_without_index_permission_can_use_locks)
{
    const auto by = add_as("without_indexes");
    COLOCK_THROWS(error, errc::access_denied, run(mongo::create_indexes(last_adapter)));
    BOOST_TEST(event_log->warnings.empty());
    auto held = run(by.acquire("k"));
    BOOST_TEST(run(by.list()).size() == 1U);
    until([&] { return event_log->warned_of("indexes could not be made"); });
    BOOST_TEST(event_log->warned_of("code 13"));
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(mongo_lost_rights, mongo_fixture,
    *boost::unit_test::precondition(has_mongodb) * boost::unit_test::precondition(has_fail_points))

BOOST_AUTO_TEST_CASE(each_operation_tells_of_a_right_that_was_taken_away)
{
    auto how = options();
    how.operation_timeout = 1h;
    const auto ours = add(how);
    auto held = run(ours.acquire("k"));
    const auto deny = [&] { fail(R"({"failCommands":["findAndModify","update"],"errorCode":13})"); };
    deny();
    COLOCK_THROWS(create_error, errc::access_denied, run(ours.acquire("other")));
    deny();
    COLOCK_THROWS(extend_error, errc::access_denied, run(held.extend(1min)));
    BOOST_TEST(held.held());
    deny();
    COLOCK_THROWS(release_error, errc::access_denied, run(held.release(on_failure::raise)));
    until([&] { return ours.stats().settling == 0; });
    BOOST_TEST(holders_at(server->port()).empty());
    BOOST_TEST_REQUIRE(event_log->warnings.size() == 1U);
    BOOST_TEST(event_log->warned_of("grant find, insert, update and remove on the collection"));
}

BOOST_AUTO_TEST_CASE(user_without_change_stream_permission_polls)
{
    const auto ours = add();
    const auto by = last_adapter;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    fail(R"({"failCommands":["aggregate"],"errorCode":13})");
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::poll; });
    BOOST_TEST(event_log->warned_of("changeStream"));
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
