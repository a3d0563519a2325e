// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/query.hpp"
#include "mongo/operations/claim_state.hpp"
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

using namespace std::string_literals;

/// Documents of another program in the collection of the locks. Some have fields of the names that colock uses.
struct foreign_documents : mongo_fixture
{
    static inline const std::vector<std::string> fields{R"("total":3)", R"("x":5,"y":3)", R"("x":null,"hx":0,"n":1)",
        R"("t":"someone","f":7)", R"("h":[{"t":"a","x":1}])", R"("hx":{"$numberLong":"9223372036854775807"})",
        R"("t":"someone","x":{"$numberLong":"9223372036854775807"})", R"("x":"text")", R"("x":"text","hx":0)",
        R"("x":1,"hx":[])", R"("p":{"$date":0})", R"("p":{"$date":0},"x":0,"h":[])"};

    foreign_documents()
    {
        for (std::size_t i = 0; i < fields.size(); ++i)
            insert('"' + key(i) + '"', fields[i]);
        for (const auto* const id : {"1", R"({"$oid":"0123456789abcdef01234567"})", R"({"c":"other"})",
                 R"({"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}})"})
            insert(id, R"("x":1,"total":5)");
        inserted = all();
    }

    static std::string key(std::size_t number) { return "order-" + std::to_string(10 + number); }
    void insert(const std::string& id, const std::string& with) const
    {
        static_cast<void>(ask(R"({"insert":"locks","documents":[{"_id":)" + id + ',' + with + "}]}"));
    }
    /// Returns all documents that are not colock's, as bytes.
    [[nodiscard]] std::string all() const
    {
        const auto found = ask(
            R"({"find":"locks","filter":{"_id":{"$not":{"$regex":"^ours"}},"_id.c":{"$nin":["check","clock","confirm"]}},
            "sort":{"_id":1}})");
        std::string text;
        mongo::detail::for_each_document(found, [&](const bson_iter_t& each) {
            std::uint32_t size = 0;
            const std::uint8_t* data = nullptr;
            bson_iter_document(&each, &size, &data);
            text.append(reinterpret_cast<const char*>(data), size);
        });
        return text;
    }
    void check_refused(const failure_ptr& why) const
    {
        BOOST_TEST_REQUIRE(why);
        BOOST_TEST((why->code == errc::misconfigured_backend), why->detail);
        BOOST_TEST(why->detail.find("another program's") != std::string::npos, why->detail);
    }
    template <class Error>
    void check_refused(const std::function<void()>& action) const
    {
        const auto refused = required_error<Error>(action);
        BOOST_TEST((refused.code() == errc::misconfigured_backend), refused.what());
        BOOST_TEST(std::string(refused.what()).find("another program's") != std::string::npos, refused.what());
    }

    /// The documents as they were inserted.
    std::string inserted;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_foreign, foreign_documents, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(acquire_of_a_foreign_document_is_refused,
    *boost::unit_test::precondition(not_ferretdb("pipeline that leaves the _id alone")))
{
    const auto ours = add();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        BOOST_TEST_CONTEXT(fields[i])
        {
            check_refused<create_error>([&] { static_cast<void>(run(ours.acquire(key(i)))); });
            check_refused<create_error>([&] { static_cast<void>(run(ours.try_acquire(key(i)))); });
            for (const auto most : {0U, 2U})
                check_refused<create_error>([&] {
                    static_cast<void>(run(ours.acquire(key(i), {.mode = lock_mode::shared, .max_holders = most})));
                });
        }
    }
    BOOST_TEST((all() == inserted));
    BOOST_TEST(ours.stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(acquires_of_several_keys_in_one_command_refuse_the_foreign_one_only,
    *boost::unit_test::precondition(not_ferretdb("pipeline that leaves the _id alone")))
{
    const auto ours = add();
    run(run(ours.acquire("ours")).release(on_failure::raise));
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        std::vector<running<lock>> asked;
        for (const auto& key : {"ours-1"s, key(0), "ours-2"s, key(1)})
            asked.push_back(start(io, ours.acquire(key, {.mode = mode})));
        for (std::size_t i = 0; i < asked.size(); ++i) {
            if (i % 2 == 0)
                run(asked[i].get(io).release(on_failure::raise));
            else
                check_refused<create_error>([&] { static_cast<void>(asked[i].get(io)); });
        }
    }
    BOOST_TEST((all() == inserted));
}

BOOST_AUTO_TEST_CASE(listing_and_purge_leave_foreign_documents_out)
{
    const auto ours = add();
    run(run(ours.acquire("ours")).release(on_failure::raise));
    auto held = run(ours.acquire("ours-held"));
    BOOST_TEST(run(ours.list()).size() == 1U);
    BOOST_TEST(run(ours.list({.mode = lock_mode::shared})).empty());
    BOOST_TEST(run(ours.purge()).empty());
    for (std::size_t i = 0; i < fields.size(); ++i)
        check_refused<error>([&] { static_cast<void>(run(ours.list({.key = key(i)}))); });
    BOOST_TEST((all() == inserted));
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(break_of_a_foreign_document_is_refused)
{
    const auto ours = add();
    for (std::size_t i = 0; i < fields.size(); ++i)
        check_refused<error>([&] { static_cast<void>(run(ours.break_lock(key(i)))); });
    BOOST_TEST((all() == inserted));
}

BOOST_AUTO_TEST_CASE(settling_an_unanswered_acquire_of_a_foreign_document_leaves_it,
    *boost::unit_test::precondition(not_ferretdb("pipeline that leaves the _id alone")))
{
    const driver by(io, (static_cast<void>(add()), last_adapter));
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto claimed = driver::exclusive(key(i), 1min);
        // As if a request of the claim had not been answered.
        mongo::detail::state_of(*claimed).mark_in_doubt(1);
        check_refused(by.abandon(claimed).error);
    }
    BOOST_TEST((all() == inserted));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// Keys whose documents contain nearly the greatest fence.
struct used_up_fences : mongo_fixture
{
    void set_fence(const std::string& key, const std::string& fence) const
    {
        static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":")" + key + R"("},"u":{"$set":{"f":)" +
                              fence + R"(,"x":0,"hx":0,"h":[]}},"upsert":true}]})"));
    }
    [[nodiscard]] std::string stored(const std::string& key) const
    {
        const auto reply = lock_document(key);
        return reply.substr(0, reply.find(R"("id")"));
    }
    void check_refused(const std::function<void()>& action) const
    {
        const auto refused = required_error<create_error>(action);
        BOOST_TEST((refused.code() == errc::misconfigured_backend), refused.what());
        BOOST_TEST(std::string(refused.what()).find("set the field f") != std::string::npos, refused.what());
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_fences, used_up_fences, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(fence_near_the_end_is_refused_until_it_was_repaired)
{
    const auto ours = add();
    for (const auto* const last : {"9223372036854775807", "9223372036854775806", "253402300799999", "1e19"}) {
        BOOST_TEST_CONTEXT(last)
        {
            const auto fence =
                last == "1e19"s ? R"({"$numberDouble":"1e19"})"s : R"({"$numberLong":")" + std::string(last) + "\"}";
            set_fence("k", fence);
            const auto before = stored("k");
            for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
                check_refused([&] { static_cast<void>(run(ours.acquire("k", {.mode = mode}))); });
                check_refused([&] { static_cast<void>(run(ours.try_acquire("k", {.mode = mode}))); });
                auto one = start(io, ours.acquire("k", {.mode = mode}));
                auto two = start(io, ours.acquire("k", {.mode = mode}));
                check_refused([&] { static_cast<void>(one.get(io)); });
                check_refused([&] { static_cast<void>(two.get(io)); });
            }
            BOOST_TEST(stored("k") == before);
            set_fence("k", R"({"$numberLong":"253402300799997"})");
            auto held = run(ours.acquire("k"));
            BOOST_TEST(held.fence() == 253'402'300'799'998U);
            run(held.release(on_failure::raise));
            set_fence("k", R"({"$numberLong":"7"})");
            auto next = run(ours.acquire("k"));
            BOOST_TEST(next.fence() > 7U);
            run(next.release(on_failure::raise));
        }
    }
    BOOST_TEST(ours.stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(hand_over_beyond_the_last_fence_is_refused)
{
    const auto ours = add();
    set_fence("k", R"({"$numberLong":"253402300799998"})");
    auto held = run(ours.acquire("k"));
    BOOST_TEST(held.fence() == 253'402'300'799'999U);
    auto waiting = start(io, ours.acquire("k"));
    run(held.release(on_failure::raise));
    check_refused([&] { static_cast<void>(waiting.get(io)); });
    BOOST_TEST(holders_at(server->port()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
