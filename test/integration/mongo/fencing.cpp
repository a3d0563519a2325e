// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The MongoDB example of docs/fencing.md, compiled and run.

#include "mongo_fixture.hpp"

#include <cstdint>
#include <string>

namespace colock::testing {

namespace {

//[ mongo
// Updates a document that exists and has a field for the fence, such as {_id: "cart", fence: 0}. With an upsert, a late
// writer would try to create the document again, and fail because of its _id. If the answer has n = 0, a later holder
// has written.
std::string update_unless_older(const std::string& id, const std::string& value, std::uint64_t fence)
{
    const auto number = R"({"$numberLong":")" + std::to_string(fence) + "\"}";
    return R"({"update":"carts","updates":[{)"
           R"("q":{"_id":")" +
           id + R"(","fence":{"$lte":)" + number +
           R"(}},)"
           R"("u":{"$set":{"fence":)" +
           number + R"(,"value":")" + value + R"("}}}],"writeConcern":{"w":"majority"}})";
}
//]

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_lockers, mongo_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(document_rejects_the_write_of_a_paused_holder)
{
    const auto locks = add();
    static_cast<void>(ask(R"({"insert":"carts","documents":[{"_id":"cart","fence":{"$numberLong":"0"}}]})"));
    const auto put = [&](const std::string& value, std::uint64_t fence) {
        const auto answer = ask(update_unless_older("cart", value, fence));
        bson_iter_t written;
        BOOST_TEST_REQUIRE(bson_iter_init_find(&written, answer.get(), "n"));
        return bson_iter_as_int64(&written) == 1;
    };
    const auto paused = run(locks.acquire("k"));
    BOOST_TEST(put("by the first", paused.fence()));
    static_cast<void>(run(locks.break_lock("k")));
    const auto next = run(locks.acquire("k"));
    BOOST_TEST(put("by the second", next.fence()));
    BOOST_TEST(!put("too late", paused.fence()));
    BOOST_TEST(put("once more", next.fence()));
    BOOST_TEST(ask(R"({"find":"carts"})").to_json().find("once more") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
