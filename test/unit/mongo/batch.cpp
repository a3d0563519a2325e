// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/batch.hpp"
#include "mongo/client.hpp"
#include "mongo/driver/failures.hpp"
#include "mongo/operations/batchable_operation.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock::mongo::detail;

BOOST_AUTO_TEST_SUITE(mongo_batch_commands)

BOOST_AUTO_TEST_CASE(few_operations_are_sent_alone_and_many_in_at_most_two_batches)
{
    for (const std::size_t few : {0U, 1U, 2U}) {
        BOOST_TEST(batch_count(few) == few);
        BOOST_TEST(batch_size(few) == 1U);
    }
    std::size_t last = 1;
    for (std::size_t many = 3; many < 1000; ++many) {
        const auto commands = batch_count(many);
        const auto statements = batch_size(many);
        BOOST_TEST(commands == (many <= 64 ? 1U : 2U));
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
    BOOST_TEST(errors.find(3)->code == changes_nothing);
    BOOST_TEST_REQUIRE(errors.find(4));
    BOOST_TEST((judge(*errors.find(4)) == verdict::unknown));
}

BOOST_AUTO_TEST_CASE(error_without_a_valid_index_accounts_for_nothing)
{
    for (const auto* const which : {R"("index":2,)", R"("index":-1,)", ""}) {
        const statement_errors errors(document::from_json(
            R"({"n":1,"ok":1,"writeErrors":[{)" + std::string(which) + R"("code":11000,"errmsg":"dup"}]})"));
        BOOST_TEST(!errors.accounts_for(2));
    }
}

BOOST_AUTO_TEST_CASE(an_answer_without_numbers_accounts_for_nothing)
{
    BOOST_TEST(!statement_errors(document::from_json(R"({"ok":1})")).accounts_for(1));
}

namespace {

/// An operation that counts its results.
class probe final : public batchable_operation
{
public:
    probe(client& owner, bool releases) : batchable_operation(owner), releases_(releases) {}

    int unanswered = 0;
    int others = 0;

private:
    void begin() override { ++others; }
    void failed(delivery how, colock::failure_ptr why) override
    {
        ++(how == delivery::unanswered && why->code == colock::errc::outcome_unknown ? unanswered : others);
    }
    [[nodiscard]] std::string_view key() const noexcept override { return "k"; }
    [[nodiscard]] bool is_release() const noexcept override { return releases_; }
    void write(bson_t&) override {}
    [[nodiscard]] bool needs_document() const override { return !releases_; }
    void on_refused() override { ++others; }
    void on_done() override { ++others; }
    void on_document(const lock_view&) override { ++others; }
    void on_document_unknown(const answer&) override { ++others; }

    const bool releases_;
};

/// A batch of a create and a release, which is in flight.
struct batch_in_flight
{
    batch_in_flight()
    {
        for (const auto& each : {create, release})
            each->set_batch(all);
    }
    void end(answer with, bool was_sent)
    {
        with.ends_connection = true;
        all->fail(std::move(with));
        all->set_cause(boost::asio::error::connection_reset, was_sent);
        all->on_end();
    }

    boost::asio::io_context io;
    std::shared_ptr<client> owner = client::make(io.get_executor(), settings({.url = "mongodb://h"}), {});
    boost::intrusive_ptr<probe> create{new probe(*owner, false)};
    boost::intrusive_ptr<probe> release{new probe(*owner, true)};
    std::shared_ptr<batch> all =
        std::make_shared<batch>(owner->config(), std::vector<batch::member_ptr>{create, release});
};

} // namespace

BOOST_FIXTURE_TEST_CASE(sent_batch_is_unknown_even_if_the_driver_reports_unsent, batch_in_flight)
{
    end({.outcome = answer::kind::unsent}, true);
    for (const auto& each : {create, release}) {
        BOOST_TEST(each->unanswered == 1);
        BOOST_TEST(each->others == 0);
    }
}

BOOST_FIXTURE_TEST_CASE(unsent_batch_waits_again, batch_in_flight)
{
    end({.outcome = answer::kind::unsent}, false);
    for (const auto& each : {create, release}) {
        BOOST_TEST(each->unanswered == 0);
        BOOST_TEST(each->others == 0);
    }
}

BOOST_FIXTURE_TEST_CASE(removed_operation_is_not_notified, batch_in_flight)
{
    BOOST_TEST(!all->leave(*release));
    end({.outcome = answer::kind::unknown}, true);
    BOOST_TEST(all->is_over());
    BOOST_TEST(create->unanswered == 1);
    BOOST_TEST(release->unanswered == 0);
    BOOST_TEST(release->others == 0);
    BOOST_TEST(all->leave(*create));
}

BOOST_AUTO_TEST_SUITE_END()
