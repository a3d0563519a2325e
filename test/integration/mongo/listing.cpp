// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "intercepting_proxy.hpp"
#include "mongo/commands/query.hpp"
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/foreign_cursors.hpp"
#include "support/print.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {
namespace {

/// Creates locks whose holder has disappeared, and waits until they have expired.
void leave_behind(mongo_fixture& env, int count)
{
    const driver test_driver(env.io, env.last_adapter);
    for (int i = 0; i < count; ++i)
        test_driver.grant(driver::exclusive("k" + std::to_string(i), 100ms));
    run_until(env.io, [&] { return test_driver.list().empty(); });
}

/// Inserts the documents of expired locks directly.
void leave_behind_documents(const mongo_fixture& env, int count)
{
    std::string all;
    for (int i = 0; i < count; ++i) {
        const auto number = std::to_string(1000 + i);
        all +=
            (i == 0 ? R"({"q":{"_id":"k)" : R"(,{"q":{"_id":"k)") + number +
            R"("},"u":{"t":"0000000000000000000000000000)" + number +
            R"(","x":{"$numberLong":"1000"},"f":{"$numberLong":"7"},"h":[],"hx":{"$numberLong":"0"}},"upsert":true})";
    }
    static_cast<void>(env.ask(R"({"update":"locks","updates":[)" + all + "]}"));
}

/// A real server ends a batch before it exceeds 16 MB of documents. The test servers do not.
mongo::detail::document cut_batch(const mongo::detail::document& reply)
{
    mongo::detail::document cut;
    bson_t cursor;
    bson_t batch;
    bson_append_document_begin(cut.get(), "cursor", -1, &cursor);
    bson_append_array_begin(&cursor, "firstBatch", -1, &batch);
    std::size_t size = 0;
    std::uint32_t count = 0;
    mongo::detail::for_each_document(reply, [&](const bson_iter_t& each) {
        std::uint32_t length = 0;
        const std::uint8_t* data = nullptr;
        bson_iter_document(&each, &length, &data);
        size += length;
        if (size <= 16 * 1024 * 1024)
            bson_append_iter(&batch, std::to_string(count++).c_str(), -1, &each);
    });
    bson_append_array_end(&cursor, &batch);
    bson_append_int64(&cursor, "id", -1, 0);
    bson_append_utf8(&cursor, "ns", -1, "colock.locks", -1);
    bson_append_document_end(cut.get(), &cursor);
    bson_append_double(cut.get(), "ok", -1, 1);
    return cut;
}

/// Inserts documents that are as large as documents with many readers.
void store_large(const mongo_fixture& env, int count, const std::string& expires)
{
    for (int i = 10; i < 10 + count; ++i) {
        const auto number = std::to_string(i);
        static_cast<void>(
            env.ask(R"({"update":"locks","updates":[{"q":{"_id":"k)" + number +
                    R"("},"u":{"t":"000000000000000000000000000000)" + number + R"(","x":)" + expires +
                    R"(,"f":{"$numberLong":"7"},"h":[],"hx":{"$numberLong":"0"},"o":{"group":"g","comment":")" +
                    std::string(1024 * 1024, 'c') + R"("}},"upsert":true}]})"));
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_listing, *boost::unit_test::precondition(has_mongodb))

BOOST_FIXTURE_TEST_CASE(a_purge_of_many_goes_in_steps_and_leaves_nothing_but_fences, mongo_fixture)
{
    const auto ours = add();
    leave_behind(*this, 600);
    auto held = run(ours.acquire("held", {.ttl = 1h}));
    const auto step = run(last_adapter->listing({.action = listing_action::purge}));
    BOOST_TEST(!step.error);
    BOOST_TEST((!step.next.empty() && step.locks.size() <= 300U));
    BOOST_TEST(run(ours.purge(100)).size() == 100U);
    BOOST_TEST(run(ours.purge()).size() == 500 - step.locks.size());
    BOOST_TEST(run(ours.purge()).empty());
    BOOST_TEST(held.held());
    run(held.release(on_failure::raise));
    // As if all keys had been free for two days.
    static_cast<void>(ask(
        R"({"update":"locks","updates":[{"q":{"x":{"$exists":true}},"u":{"$set":{"p":{"$date":0}}},"multi":true}]})"));
    BOOST_TEST(run(ours.purge()).empty());
    const auto left = ask(R"({"find":"locks","filter":{"x":{"$exists":true}}})").to_json();
    BOOST_TEST(left.find("\"f\"") == std::string::npos, left);
}

BOOST_FIXTURE_TEST_CASE(documents_beyond_one_reply_are_in_the_next, mongo_fixture)
{
    run(run(add().acquire("first")).release(on_failure::raise));
    intercepting_proxy interceptor(io, server->port());
    interceptor.on_command([](const intercepting_proxy::request& what) {
        return what.command == "find" ? cut_batch(what.carry_out()) : what.carry_out();
    });
    const auto ours = add(options(mongodb_url(interceptor.port())));
    store_large(*this, 20, R"({"$numberLong":"9223372036854775807"})");
    BOOST_TEST(run(ours.list()).size() == 20U);
    BOOST_TEST(run(ours.group("g").release()).size() == 20U);
    BOOST_TEST(run(ours.list()).empty());
    store_large(*this, 20, R"({"$numberLong":"1000"})");
    BOOST_TEST(run(ours.purge()).size() == 20U);
    static_cast<void>(run(ours.shutdown(5s)));
}

BOOST_FIXTURE_TEST_CASE(purge_continues_beyond_the_operation_timeout, mongo_fixture)
{
    leave_behind_documents(*this, 300);
    intercepting_proxy interceptor(io, server->port());
    interceptor.on_command([](const intercepting_proxy::request& what) {
        if (what.command == "findAndModify")
            std::this_thread::sleep_for(15ms);
        return what.carry_out();
    });
    auto settings = options(mongodb_url(interceptor.port()));
    // Each step has enough time, even on a busy machine, but all steps together take longer than the timeout.
    settings.operation_timeout = 4s;
    const auto ours = add(settings);
    BOOST_TEST(run(ours.purge()).size() == 300U);
    static_cast<void>(run(ours.shutdown(5s)));
}

BOOST_AUTO_TEST_CASE(foreign_cursors_are_refused)
{
    asio::io_context io;
    check_cursors_are_refused(*mongo::make_adapter(io.get_executor(), {.url = "mongodb://127.0.0.1:1"}),
        {"x", "tk", "mongodb", "mongodb:", "mongodb:x", "mongodb:t\xff", "memory:0.0", "redis:1", "zookeeper:00"});
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
