// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/joint.hpp"
#include "mongo/failures.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>

using namespace colock::mongo::detail;

BOOST_AUTO_TEST_SUITE(joint_commands)

BOOST_AUTO_TEST_CASE(few_go_alone_and_many_go_in_few_parts)
{
    for (const std::size_t few : {0U, 1U, 2U}) {
        BOOST_TEST(worthwhile_commands(few) == few);
        BOOST_TEST(worthwhile_statements(few) == 1U);
    }
    std::size_t last = 1;
    for (std::size_t many = 3; many < 1000; ++many) {
        const auto commands = worthwhile_commands(many);
        const auto statements = worthwhile_statements(many);
        BOOST_TEST(commands >= 2U);
        BOOST_TEST(statements <= 64U);
        BOOST_TEST((statements == 64 || commands * statements >= many));
        last = statements;
    }
    BOOST_TEST(last == 64U);
}

BOOST_AUTO_TEST_CASE(an_error_belongs_to_its_statement)
{
    const statement_errors errors(document::from_json(R"({"n":2,"nModified":2,"ok":1,"writeErrors":[
        {"index":1,"code":11000,"errmsg":"dup"},{"index":3,"code":66,"errmsg":"_id"},{"index":4,"code":11600}]})"));
    BOOST_TEST(errors.accounts_for(5));
    BOOST_TEST(!errors.accounts_for(6));
    BOOST_TEST(!errors.find(0));
    BOOST_TEST(!errors.find(2));
    BOOST_TEST_REQUIRE(errors.find(1));
    BOOST_TEST((judge(*errors.find(1)) == verdict::conflict));
    BOOST_TEST_REQUIRE(errors.find(3));
    BOOST_TEST(errors.find(3)->code == was_not_held);
    BOOST_TEST_REQUIRE(errors.find(4));
    BOOST_TEST((judge(*errors.find(4)) == verdict::unknown));
}

BOOST_AUTO_TEST_CASE(an_answer_without_numbers_accounts_for_nothing)
{
    BOOST_TEST(!statement_errors(document::from_json(R"({"ok":1})")).accounts_for(1));
}

BOOST_AUTO_TEST_SUITE_END()
