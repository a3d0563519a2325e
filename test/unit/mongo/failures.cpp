// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/failures.hpp"

#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string_view>

#include <mongoc/mongoc.h>

using namespace colock;
using namespace colock::mongo::detail;

namespace {

answer refusal(int code)
{
    return judge_failure(MONGOC_ERROR_SERVER, static_cast<std::uint32_t>(code), "refused");
}

answer success(std::string_view reply)
{
    answer got;
    got.what = answer::kind::done;
    got.reply = document::from_json(reply);
    return got;
}

void check(int code, verdict meant, errc told)
{
    BOOST_TEST_CONTEXT("code " << code)
    {
        const auto got = refusal(code);
        BOOST_TEST((judge(got) == meant));
        BOOST_TEST((failure_of(got)->code == told), failure_of(got)->detail);
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_failures)

BOOST_AUTO_TEST_CASE(what_may_have_been_done_is_unknown)
{
    // 133, 202, 211: a router found no primary, or lost it; the key that signs the time is not there.
    for (const int code : {6, 7, 50, 64, 89, 91, 189, 262, 9001, 13436, 133, 202, 211})
        check(code, verdict::unknown, errc::outcome_unknown);
}

/// All codes of the server's category Interruption, but for those of a timeout and for LockTimeout.
BOOST_AUTO_TEST_CASE(what_was_interrupted_is_unknown)
{
    for (const int code :
        {237, 279, 281, 282, 290, 355, 453, 471, 473, 485, 509, 11600, 11601, 11602, 46841, 91331, 10045600})
        check(code, verdict::unknown, errc::outcome_unknown);
}

BOOST_AUTO_TEST_CASE(what_a_server_cannot_do_for_now_is_neither_refused_for_good_nor_asked_again_at_once)
{
    for (const int code : {134, 175, 365, 371, 402, 433, 449, 450, 462, 12587, 14031}) {
        check(code, verdict::refused, errc::unavailable);
        BOOST_TEST(!is_leaving(refusal(code)));
    }
}

BOOST_AUTO_TEST_CASE(what_collides_is_asked_again)
{
    for (const int code : {11000, 112, 24, 46, 208})
        check(code, verdict::conflict, errc::unavailable);
}

BOOST_AUTO_TEST_CASE(what_is_no_primary_is_left)
{
    for (const int code : {10107, 13435, 10058}) {
        check(code, verdict::later, errc::unavailable);
        BOOST_TEST(is_leaving(refusal(code)));
    }
}

BOOST_AUTO_TEST_CASE(a_denial_is_told_as_one_and_all_else_as_a_mistake)
{
    for (const int code : {13, 18, 33, 8000}) {
        check(code, verdict::refused, errc::access_denied);
        BOOST_TEST(is_denial(refusal(code)));
    }
    for (const int code : {2, 9, 59, 121})
        check(code, verdict::refused, errc::misconfigured_backend);
}

BOOST_AUTO_TEST_CASE(a_success_with_errors_in_it_is_none)
{
    BOOST_TEST((judge(success(R"({"ok":1,"n":1})")) == verdict::done));
    for (const auto* const reply : {R"({"ok":1,"n":0,"writeErrors":[{"index":0,"code":14}]})",
             R"({"ok":1,"value":{},"writeConcernError":{"code":64}})"})
    {
        BOOST_TEST((judge(success(reply)) == verdict::unknown));
        BOOST_TEST((failure_of(success(reply))->code == errc::outcome_unknown));
    }
}

BOOST_AUTO_TEST_SUITE_END()
