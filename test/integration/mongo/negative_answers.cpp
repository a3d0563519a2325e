// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"

#include <functional>
#include <string>

namespace colock::testing {
namespace {

/// Two claims whose locks were broken, so that "not held" is the correct answer about them. A former primary could give
/// the same answer about a claim that is still held, so the answer is reported only after a majority has confirmed it.
struct negative_answers : mongo_fixture
{
    negative_answers()
    {
        for (const auto& each : {exclusive, shared})
            test_driver.grant(each);
        for (const auto* const key : {"k", "s"})
            BOOST_TEST(test_driver.break_key(key).size() == 1U);
    }

    /// Checks that a negative answer without the confirmation of a majority is not reported.
    void check_unknown(const std::function<void()>& disturb)
    {
        const auto check = [](const failure_ptr& why, errc expected = errc::outcome_unknown) {
            BOOST_TEST_REQUIRE(!!why);
            BOOST_TEST(why->code == expected);
        };
        for (const auto& each : {exclusive, shared}) {
            disturb();
            check(test_driver.release(each).error);
            disturb();
            check(test_driver.extend(each, 1min).error);
            disturb();
            check(run(test_driver.backend().is_valid(sent_now(each))).error);
        }
        disturb();
        // The operation has only read, and has changed nothing.
        check(run(test_driver.backend().listing({.action = listing_action::break_key, .filter = {.key = "k"}})).error,
            errc::unavailable);
    }
    void check_not_held()
    {
        for (const auto& each : {exclusive, shared}) {
            BOOST_TEST((test_driver.release(each).status == release_status::not_held));
            BOOST_TEST((test_driver.extend(each, 1min).status == extend_status::not_held));
            test_driver.check_not_held(each);
        }
        BOOST_TEST(test_driver.break_key("k").empty());
    }

    const driver test_driver{io, mongo::make_adapter(io.get_executor(), options())};
    const plain_claim_ptr exclusive = driver::exclusive("k");
    const plain_claim_ptr shared = driver::shared("s");
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_negative_answers, negative_answers, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(failed_write_confirms_no_negative_answer)
{
    static_cast<void>(ask(R"({"delete":"locks","deletes":[{"q":{"_id":{"c":"confirm"}},"limit":1}]})"));
    // A number cannot be added to this field. The server reports the error inside of a successful reply.
    static_cast<void>(ask(R"({"insert":"locks","documents":[{"_id":{"c":"confirm"},"n":"text"}]})"));
    check_unknown([] {});
    static_cast<void>(ask(R"({"delete":"locks","deletes":[{"q":{"_id":{"c":"confirm"}},"limit":1}]})"));
    check_not_held();
}

BOOST_AUTO_TEST_CASE(
    write_without_a_majority_confirms_no_negative_answer, *boost::unit_test::precondition(has_fail_points))
{
    check_unknown([this] {
        fail(R"({"failCommands":["update"],"writeConcernError":{"code":64,"errmsg":"waiting timed out"}})");
    });
    check_not_held();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
