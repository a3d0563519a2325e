// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/query.hpp"
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/testing/remote_contract.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// Two clients of one server.
struct two_clients : mongo_fixture
{
    [[nodiscard]] driver client() { return {io, mongo::make_adapter(io.get_executor(), options())}; }
    [[nodiscard]] std::string writer_of(const std::string& key) const
    {
        std::string writer;
        mongo::detail::for_each_document(
            ask(R"({"find":"locks","filter":{"_id":")" + key + "\"}}"), [&](const bson_iter_t& each) {
                bson_iter_t fields;
                if (bson_iter_recurse(&each, &fields) && bson_iter_find(&fields, "wt") && BSON_ITER_HOLDS_UTF8(&fields))
                    writer = bson_iter_utf8(&fields, nullptr);
            });
        return writer;
    }
    /// Checks that neither a single attempt nor a waiting claim is granted.
    void check_closed_to_writers(const std::string& key) const
    {
        other.check_refused(driver::one_attempt(key));
        const auto waiting_claim = driver::exclusive(key);
        other.check_refused(waiting_claim);
        other.abandon(waiting_claim);
    }

    const driver test_driver = client();
    const driver other = client();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_readers, two_clients, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_writer_is_kept_out_by_the_reader_that_stays_longest_however_the_others_came_and_went)
{
    const auto extended = driver::shared("extended", 0, 4s);
    test_driver.grant(extended);
    BOOST_TEST((test_driver.extend(extended, 1h).status == extend_status::extended));

    const auto first = driver::shared("followed", 0, 1h), follower = driver::shared("followed", 0, 4s);
    test_driver.grant(first);
    other.grant(follower);

    const auto remaining = driver::shared("left"), gone = driver::shared("left"), released = driver::shared("left");
    for (const auto& each : {gone, remaining, released})
        test_driver.grant(each);
    test_driver.abandon(gone);
    test_driver.release_held(released);

    const auto shortened = driver::shared("shortened", 0, 1h), beside = driver::shared("shortened", 0, 1h);
    test_driver.grant(shortened);
    other.grant(beside);
    BOOST_TEST((other.extend(beside, 500ms).status == extend_status::extended));

    contract::pass_real_time(io, 4500ms);
    for (const auto* const key : {"extended", "followed", "left", "shortened"}) {
        BOOST_TEST_CONTEXT(key)
        {
            BOOST_TEST(test_driver.inspect(key).size() == 1U);
            check_closed_to_writers(key);
        }
    }
    for (const auto& each : {extended, first, remaining, shortened})
        test_driver.release_held(each);
    for (const auto* const key : {"extended", "followed", "left", "shortened"})
        other.grant(driver::one_attempt(key));
}

BOOST_AUTO_TEST_CASE(a_writer_that_waits_keeps_new_readers_out_until_it_was_let_in_or_gives_up)
{
    for (const bool gives_up : {false, true}) {
        const auto reader = driver::shared("k"), late = driver::shared("k");
        test_driver.grant(reader);
        const auto writer = driver::exclusive("k");
        test_driver.check_refused(writer);
        BOOST_TEST(writer_of("k") == writer->token().hex());
        other.check_refused(late);
        if (gives_up) {
            test_driver.abandon(writer);
        } else {
            test_driver.release_held(reader);
            test_driver.grant(writer);
            test_driver.release_held(writer);
        }
        BOOST_TEST(writer_of("k").empty());
        other.grant(late);
        other.release_held(late);
        if (gives_up)
            test_driver.release_held(reader);
    }
}

BOOST_AUTO_TEST_CASE(a_writer_does_not_put_itself_in_the_place_of_one_that_waits)
{
    for (const bool gives_up : {false, true}) {
        const auto reader = driver::shared("k");
        test_driver.grant(reader);
        const auto first = driver::exclusive("k"), second = driver::exclusive("k");
        test_driver.check_refused(first);
        other.check_refused(second);
        BOOST_TEST(writer_of("k") == first->token().hex());
        other.abandon(second);
        BOOST_TEST(writer_of("k") == first->token().hex());
        if (gives_up) {
            test_driver.abandon(first);
            test_driver.release_held(reader);
        } else {
            test_driver.release_held(reader);
            test_driver.grant(first);
            test_driver.release_held(first);
        }
        BOOST_TEST(writer_of("k").empty());
    }
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// Many shared locks on one key, acquired and released at the same time.
struct many_readers : mongo_fixture
{
    many_readers() { run(run(ours.acquire("warm")).release(on_failure::raise)); }

    std::vector<lock> take(
        std::size_t count, const acquire_options& how, const std::function<std::string(std::size_t)>& key)
    {
        std::vector<running<lock>> asked;
        for (std::size_t i = 0; i < count; ++i)
            asked.push_back(start(io, ours.acquire(key(i), how)));
        std::vector<lock> held;
        for (auto& each : asked)
            held.push_back(each.get(io));
        return held;
    }
    void release(std::vector<lock>& held)
    {
        std::vector<running<void>> given;
        for (auto& each : held)
            given.push_back(start(io, each.release(on_failure::raise)));
        for (auto& each : given)
            each.get(io);
    }

    /// On a busy machine the operations may take long.
    [[nodiscard]] mongo::options patient() const
    {
        auto how = options();
        how.operation_timeout = 1min;
        return how;
    }

    const locker ours = add(patient());
};

std::string one_key(std::size_t)
{
    return "k";
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_many_readers, many_readers, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(each_reader_has_a_fence_of_its_own_and_is_listed)
{
    for (const auto ttl : {30s, 0s}) {
        auto held = take(20, {.ttl = ttl, .mode = lock_mode::shared}, one_key);
        std::set<std::uint64_t> fences;
        for (const auto& each : held)
            fences.insert(each.fence());
        BOOST_TEST(fences.size() == held.size());
        const auto listed = run(ours.list({.key = "k"}));
        BOOST_TEST(listed.size() == held.size());
        for (const auto& each : listed) {
            BOOST_TEST(fences.contains(each.fence));
            BOOST_TEST(each.remaining.has_value() == (ttl != 0s));
        }
        BOOST_TEST(!run(ours.try_acquire("k")).has_value());
        release(held);
        auto next = run(ours.acquire("k"));
        BOOST_TEST(next.fence() > *fences.rbegin());
        run(next.release(on_failure::raise));
    }
}

BOOST_AUTO_TEST_CASE(readers_with_different_ttls_expire_each_at_its_time)
{
    std::vector<running<lock>> asked;
    for (const auto ttl : {1h, 2h, 3h})
        asked.push_back(start(io, ours.acquire("k", {.ttl = ttl, .mode = lock_mode::shared})));
    std::vector<lock> held;
    for (auto& each : asked)
        held.push_back(each.get(io));
    for (std::size_t i = 0; i < held.size(); ++i)
        BOOST_TEST((held[i].expires_at() - lease_clock::now() < std::chrono::hours(i + 1)));
    std::vector<std::chrono::hours> left;
    for (const auto& each : run(ours.list({.key = "k"})))
        left.push_back(std::chrono::ceil<std::chrono::hours>(each.remaining.value()));
    std::ranges::sort(left);
    BOOST_TEST((left == std::vector<std::chrono::hours>{1h, 2h, 3h}));
    release(held);
}

BOOST_AUTO_TEST_CASE(release_of_readers_tells_each_whether_it_was_held)
{
    auto held = take(10, {.mode = lock_mode::shared}, one_key);
    // One lock is removed, and the others stay held.
    auto other = run(ours.acquire("k", {.mode = lock_mode::shared}));
    static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"k"},"u":{"$pop":{"h":-1}}}]})"));
    std::vector<running<void>> given;
    for (auto& each : held)
        given.push_back(start(io, each.release(on_failure::raise)));
    int failed = 0;
    for (auto& each : given) {
        try {
            each.get(io);
        } catch (const release_error& refused) {
            BOOST_TEST((refused.code() == errc::not_held), refused.what());
            ++failed;
        }
    }
    BOOST_TEST(failed == 1);
    BOOST_TEST(run(ours.list({.key = "k"})).size() == 1U);
    run(other.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(holder_of_a_foreign_type_is_refused_without_retries)
{
    for (const auto* const x :
        {R"("text")", R"({"$date":{"$numberLong":"9999999999999"}})", "true", R"({"$numberDecimal":"1e30"})", "{}"})
    {
        BOOST_TEST_CONTEXT(x)
        {
            static_cast<void>(ask(R"({"delete":"locks","deletes":[{"q":{"_id":"odd"},"limit":1}]})"));
            static_cast<void>(ask(R"({"insert":"locks","documents":[{"_id":"odd","x":0,)"
                                  R"("hx":{"$numberLong":"9000000000000"},"h":[{"t":"someone","x":)" +
                                  std::string(x) + "}]}]}"));
            for (const auto& how : {acquire_options{}, acquire_options{.mode = lock_mode::shared, .max_holders = 1}}) {
                const auto before = ours.stats().attempts;
                COLOCK_THROWS(create_error, errc::misconfigured_backend, run(ours.acquire("odd", how)));
                BOOST_TEST(ours.stats().attempts - before <= 2U);
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
