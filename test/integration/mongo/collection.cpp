// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <functional>
#include <string>

namespace colock::testing {
namespace {

using namespace std::string_literals;

/// A collection that was created before colock uses it.
struct made_collection : mongo_fixture
{
    void make(const std::string& with) const
    {
        static_cast<void>(ask(R"({"create":"locks")" + (with.empty() ? with : ',' + with) + '}'));
    }
    void add_index(const std::string& fields) const
    {
        static_cast<void>(ask(R"({"createIndexes":"locks","indexes":[{)" + fields + "}]}"));
    }
    void check_refused(const std::function<void()>& action, const std::string& why) const
    {
        const auto refused = required_error<error>(action);
        BOOST_TEST((refused.code() == errc::misconfigured_backend), refused.what());
        const std::string text = refused.what();
        BOOST_TEST(text.find(why) != std::string::npos, text);
        BOOST_TEST(text.find("collection of its own") != std::string::npos, text);
    }
    void check_refused(const std::string& why)
    {
        const auto ours = add();
        check_refused([&] { static_cast<void>(run(ours.acquire("k"))); }, why);
    }
    void check_suitable()
    {
        const auto ours = add();
        auto first = run(ours.acquire("one"));
        auto second = run(ours.acquire("two"));
        run(first.release(on_failure::raise));
        run(second.release(on_failure::raise));
    }
};

/// A collection whose user has the role with the fewest rights of docs/mongodb.md. The user may not list collections or
/// indexes.
struct restricted_collection : made_collection
{
    restricted_collection()
    {
        static_cast<void>(
            ask(R"({"createRole":"app","privileges":[{"resource":{"db":"colock","collection":"locks"},"actions":[
            "find","insert","update","remove","changeStream","createIndex"]}],"roles":[]})"));
        static_cast<void>(ask(R"({"createUser":"app","pwd":"secret","roles":[{"role":"app","db":"colock"}]})"));
    }
    locker add_restricted()
    {
        server->kill();
        server->start({"--auth"});
        return add(options("mongodb://app:secret@127.0.0.1:" + std::to_string(server->port()) + "/?authSource=colock"));
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_collection, made_collection, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(unique_index_is_refused_and_named_in_the_error)
{
    add_index(R"("key":{"name":1},"name":"by_name","unique":true)");
    check_refused("has the unique index by_name");
}

BOOST_AUTO_TEST_CASE(indexes_without_an_entry_for_locks_are_accepted)
{
    add_index(R"("key":{"name":1},"name":"sparse","unique":true,"sparse":true)");
    add_index(R"("key":{"other":1},"name":"partial","unique":true,
        "partialFilterExpression":{"other":{"$exists":true}})");
    add_index(R"("key":{"third":1},"name":"plain")");
    check_suitable();
}

BOOST_AUTO_TEST_CASE(view_is_refused, *boost::unit_test::precondition(not_ferretdb("views")))
{
    make(R"("viewOn":"others","pipeline":[])");
    check_refused("is a view");
}

BOOST_AUTO_TEST_CASE(time_series_is_refused, *boost::unit_test::precondition(not_ferretdb("time series")))
{
    make(R"("timeseries":{"timeField":"p"})");
    check_refused("is a time series");
}

BOOST_AUTO_TEST_CASE(capped_collection_is_refused, *boost::unit_test::precondition(not_ferretdb("capped collections")))
{
    make(R"("capped":true,"size":100000)");
    check_refused("is capped");
}

BOOST_AUTO_TEST_CASE(collation_is_refused, *boost::unit_test::precondition(not_ferretdb("collations")))
{
    make(R"("collation":{"locale":"en","strength":2})");
    check_refused("has a collation");
}

BOOST_AUTO_TEST_CASE(
    validator_that_refuses_locks_is_refused, *boost::unit_test::precondition(not_ferretdb("validators")))
{
    make(R"("validator":{"name":{"$type":"string"}})");
    check_refused("has a validator");
}

BOOST_AUTO_TEST_CASE(validator_that_is_made_later_is_named_too)
{
    const auto ours = add();
    run(run(ours.acquire("k")).release(on_failure::raise));
    static_cast<void>(ask(R"({"collMod":"locks","validator":{"name":{"$type":"string"}}})"));
    check_refused([&] { static_cast<void>(run(ours.acquire("other"))); }, "has a validator");
}

BOOST_AUTO_TEST_CASE(unique_index_that_is_made_later_is_not_reported_as_a_busy_lock,
    *boost::unit_test::precondition(not_ferretdb("name of the index in the error of a duplicate key")))
{
    const auto ours = add();
    auto held = run(ours.acquire("k"));
    // The index can be made only while one document has no name.
    static_cast<void>(ask(R"({"delete":"locks","deletes":[{"q":{"_id":{"c":"clock"}},"limit":1}]})"));
    add_index(R"("key":{"name":1},"name":"by_name","unique":true)");
    // A negative answer needs a confirming write.
    check_refused([&] { static_cast<void>(run(ours.is_locked("other"))); }, "has the unique index by_name");
    check_refused([&] { static_cast<void>(run(ours.break_lock("other"))); }, "has the unique index by_name");
    // The commands below have one statement or several.
    check_refused([&] { static_cast<void>(run(ours.acquire("other"))); }, "has the unique index by_name");
    check_refused([&] { static_cast<void>(run(ours.try_acquire("other"))); }, "has the unique index by_name");
    check_refused([&] { static_cast<void>(run(ours.acquire("other", {.mode = lock_mode::shared}))); },
        "has the unique index by_name");
    auto first = start(io, ours.acquire("first"));
    auto second = start(io, ours.acquire("second"));
    check_refused([&] { static_cast<void>(first.get(io)); }, "has the unique index by_name");
    check_refused([&] { static_cast<void>(second.get(io)); }, "has the unique index by_name");
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(mongo_restricted_collection, restricted_collection,
    *boost::unit_test::precondition(has_mongodb) * boost::unit_test::precondition(not_ferretdb("roles of users")))

BOOST_AUTO_TEST_CASE(unique_index_is_named)
{
    add_index(R"("key":{"name":1},"name":"by_name","unique":true)");
    const auto ours = add_restricted();
    check_refused([&] { static_cast<void>(run(ours.acquire("one"))); }, "has the unique index by_name");
}

BOOST_AUTO_TEST_CASE(validator_is_named)
{
    make(R"("validator":{"name":{"$type":"string"}})");
    const auto ours = add_restricted();
    check_refused([&] { static_cast<void>(run(ours.acquire("one"))); }, "has a validator");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
