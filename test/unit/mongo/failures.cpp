// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/failures.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <ostream>
#include <string>
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
    got.outcome = answer::kind::done;
    got.reply = document::from_json(reply);
    return got;
}

answer duplicate(const std::string& index, std::string_view reply)
{
    auto got = judge_failure(MONGOC_ERROR_SERVER, 11000,
        index.empty()
            ? "duplicate"
            : "E11000 duplicate key error collection: a.b index: " + index + " dup key: { name: \"secret\" }");
    got.reply = document::from_json(reply);
    return got;
}

answer refusal_without_code()
{
    return judge_failure(MONGOC_ERROR_SERVER, 0, "out of luck");
}

void check(int code, verdict expected_verdict, errc expected)
{
    BOOST_TEST_CONTEXT("code " << code)
    {
        const auto got = refusal(code);
        BOOST_TEST((judge(got) == expected_verdict));
        BOOST_TEST((failure_of(got)->code == expected), failure_of(got)->detail);
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_failures)

BOOST_AUTO_TEST_CASE(interrupted_network_is_unknown)
{
    // Codes 133, 202 and 211: a router found no primary or lost its primary; the key that signs the time is missing.
    for (const int code : {6, 7, 50, 64, 89, 91, 189, 262, 9001, 13436, 133, 202, 211})
        check(code, verdict::unknown, errc::outcome_unknown);
}

/// All codes of the server's category Interruption, except the codes of a timeout and LockTimeout.
BOOST_AUTO_TEST_CASE(interrupted_command_is_unknown)
{
    for (const int code :
        {237, 279, 281, 282, 290, 355, 453, 471, 473, 485, 509, 11600, 11601, 11602, 46841, 91331, 10045600})
        check(code, verdict::unknown, errc::outcome_unknown);
}

BOOST_AUTO_TEST_CASE(temporary_refusal_leaves_the_outcome_unknown_without_a_new_primary)
{
    for (const int code : {134, 175, 365, 371, 402, 433, 449, 450, 462, 12587, 14031}) {
        check(code, verdict::unknown, errc::outcome_unknown);
        BOOST_TEST(is_temporary(refusal(code)), code);
        BOOST_TEST(!needs_new_primary(refusal(code)));
    }
}

BOOST_AUTO_TEST_CASE(only_errors_that_come_before_the_first_change_mean_that_nothing_was_changed)
{
    // InternalError, BadValue, GraphContainsCycle, UnknownError, NamespaceNotFound, PathNotViable, OperationFailed,
    // NotImplemented, ExceededMemoryLimit, BSONObjectTooLarge, and codes without a name.
    for (const int code : {0, 1, 2, 5, 8, 15, 17, 20, 26, 28, 96, 115, 146, 238, 10334, 17280, 40324, 31249, 33685634})
    {
        check(code, verdict::unknown, errc::outcome_unknown);
        BOOST_TEST(is_unexplained(refusal(code), changes_nothing), code);
    }
    // The other codes: a denied user, operands of other types, an unsuitable collection, an unknown command or field,
    // and the code that the check of the server has learned.
    for (const int code : {13, 18, 33, 8000, 14, 241, 16554, 16883, 17124, 28651, 28664, 40081, 40400, 121, 72, 166,
             116, 10003, 9, 59, 66})
    {
        BOOST_TEST((judge(refusal(code)) == verdict::refused), code);
        BOOST_TEST(!is_unexplained(refusal(code), changes_nothing), code);
    }
    BOOST_TEST((judge(refusal(33685634), 33685634) == verdict::refused));
    BOOST_TEST((judge(refusal(66), 33685634) == verdict::unknown));
}

BOOST_AUTO_TEST_CASE(failed_command_of_several_statements_is_unknown_unless_the_user_is_denied)
{
    const auto of_batch = [](int code) {
        auto got = refusal(code);
        got.is_of_batch = true;
        return judge(got);
    };
    for (const int code : {0, 1, 9, 14, 59, 66, 112, 121, 11000})
        BOOST_TEST((of_batch(code) == verdict::unknown), code);
    for (const int code : {13, 18, 33, 8000})
        BOOST_TEST((of_batch(code) == verdict::refused), code);
    BOOST_TEST((of_batch(10107) == verdict::later));
}

BOOST_AUTO_TEST_CASE(failure_with_an_unknown_outcome_contains_the_text_of_the_server)
{
    auto got = refusal_without_code();
    BOOST_TEST(failure_of(got)->detail.find("the server has failed, and does not report what it has carried out "
                                            "(no code: out of luck)") != std::string::npos,
        failure_of(got)->detail);
    got.code = 8;
    got.reply = document::from_json(R"({"codeName":"UnknownError"})");
    BOOST_TEST(failure_of(got)->detail.find("(code 8, UnknownError: out of luck)") != std::string::npos,
        failure_of(got)->detail);
    got.text = std::string(10'000, 'x');
    BOOST_TEST(failure_of(got)->detail.size() < 1000U);
}

BOOST_AUTO_TEST_CASE(outcome_of_a_read_is_never_unknown)
{
    const auto code_of = [](const answer& got) { return failure_of(got, changes_nothing, effect::reads)->code; };
    for (const int code : {0, 1, 8, 96, 50, 91, 11601, 175, 112, 10107})
        BOOST_TEST((code_of(refusal(code)) == errc::unavailable), code);
    for (const int code : {2, 9, 59, 238, 40324})
        BOOST_TEST((code_of(refusal(code)) == errc::misconfigured_backend), code);
    BOOST_TEST((code_of(refusal(13)) == errc::access_denied));
    answer lost;
    lost.outcome = answer::kind::unknown;
    BOOST_TEST((code_of(lost) == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(write_conflict_is_retried)
{
    for (const int code : {11000, 112, 24, 46, 208})
        check(code, verdict::conflict, errc::unavailable);
}

BOOST_AUTO_TEST_CASE(not_primary_error_ends_the_connection)
{
    for (const int code : {10107, 13435, 10058}) {
        check(code, verdict::later, errc::unavailable);
        BOOST_TEST(needs_new_primary(refusal(code)));
    }
}

BOOST_AUTO_TEST_CASE(denial_is_access_denied_and_other_refusals_are_misconfiguration)
{
    for (const int code : {13, 18, 33, 8000}) {
        check(code, verdict::refused, errc::access_denied);
        BOOST_TEST(is_denial(refusal(code)));
    }
    for (const int code : {9, 59, 121})
        check(code, verdict::refused, errc::misconfigured_backend);
}

BOOST_AUTO_TEST_CASE(success_with_write_errors_is_unknown)
{
    BOOST_TEST((judge(success(R"({"ok":1,"n":1})")) == verdict::done));
    for (const auto* const reply : {R"({"ok":1,"n":0,"writeErrors":[{"index":0,"code":14}]})",
             R"({"ok":1,"value":{},"writeConcernError":{"code":64}})"})
    {
        BOOST_TEST((judge(success(reply)) == verdict::unknown));
        BOOST_TEST((failure_of(success(reply))->code == errc::outcome_unknown));
    }
}

BOOST_AUTO_TEST_CASE(duplicate_key_of_another_index_names_that_index)
{
    const auto check_named = [](const answer& got, std::string_view name) {
        BOOST_TEST((judge(got) == verdict::refused));
        const auto why = failure_of(got);
        BOOST_TEST((why->code == errc::misconfigured_backend));
        BOOST_TEST(why->detail.find("unique index " + std::string(name) + ',') != std::string::npos, why->detail);
        BOOST_TEST(why->detail.find("secret") == std::string::npos, why->detail);
    };
    auto by_both = duplicate("by_name", R"({"keyPattern":{"name":1}})");
    check_named(by_both, "by_name");
    check_named(duplicate("by name", "{}"), "by name");
    check_named(duplicate("", R"({"keyPattern":{"name":1}})"), "name");
    check_named(duplicate("pair", R"({"keyPattern":{"_id":1,"name":1}})"), "pair");
}

BOOST_AUTO_TEST_CASE(duplicate_key_of_the_id_is_a_conflict)
{
    for (const auto& got : {duplicate("_id_", R"({"keyPattern":{"_id":1}})"), duplicate("_id_", "{}"),
             duplicate("", R"({"keyPattern":{"_id":1}})"), duplicate("", "{}")})
        BOOST_TEST((judge(got) == verdict::conflict));
}

BOOST_AUTO_TEST_CASE(unsuitable_collection_is_reported_with_its_reason)
{
    const auto check_named = [](int code, const char* text, std::string_view why) {
        const auto got = judge_failure(MONGOC_ERROR_SERVER, static_cast<std::uint32_t>(code), text);
        BOOST_TEST((judge(got) == verdict::refused));
        BOOST_TEST((failure_of(got)->code == errc::misconfigured_backend));
        BOOST_TEST(failure_of(got)->detail.find(why) != std::string::npos, failure_of(got)->detail);
    };
    check_named(121, "Document failed validation", "has a validator");
    check_named(166, "Namespace colock.locks is a view, not a collection", "is a view");
    check_named(166, "Namespace colock.locks is a timeseries collection", "is a time series");
    check_named(72, "Cannot perform an upsert on a time-series collection", "is a time series");
    check_named(72, "another option", "is it MongoDB 5.0 or later?");
    check_named(10003, "Cannot change the size of a document in a capped collection", "is capped");
    check_named(66, "would modify the immutable field '_id'", "the document of this key is another program's");
    check_named(
        14, "$add only supports numeric or date types, not string", "the document of this key is another program's");
}

BOOST_AUTO_TEST_CASE(code_with_a_standard_meaning_is_distinguished_from_a_private_code)
{
    for (const int code : {0, 1, 8, 96, 9, 11000, 112, 10107, 50, 11601, 175, 13, 14, 121})
        BOOST_TEST(has_other_meaning(code), code);
    for (const int code : {changes_nothing, 33685634})
        BOOST_TEST(!has_other_meaning(code), code);
}

BOOST_AUTO_TEST_CASE(server_that_is_not_the_primary_is_described_without_a_code)
{
    auto got = make_not_primary("another server answers at this address");
    got.set_cause({}, false);
    BOOST_TEST((judge(got) == verdict::later));
    BOOST_TEST(needs_new_primary(got));
    const auto failed = failure_of(got);
    BOOST_TEST((failed->code == errc::unavailable));
    BOOST_TEST(failed->detail.find("another server answers at this address") != std::string::npos, failed->detail);
    BOOST_TEST(failed->detail.find("code") == std::string::npos, failed->detail);
}

BOOST_AUTO_TEST_CASE(failure_without_a_known_cause_has_none)
{
    const auto failed = failure_of(judge_failure(
        MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "no connection can be started"));
    BOOST_TEST((failed->code == errc::unavailable));
    BOOST_TEST(failed->detail.find("no connection can be started") != std::string::npos, failed->detail);
    BOOST_TEST(!failed->cause);
}

BOOST_AUTO_TEST_SUITE_END()
