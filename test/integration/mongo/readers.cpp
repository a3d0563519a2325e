// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_scene.hpp"
#include "mongo/query.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"

#include <colock/remote_contract.hpp>

#include <string>

namespace colock::testing {
namespace {

/// Two clients of one server.
struct two_clients : mongo_scene
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
    /// Neither one that waits nor one that does not.
    void check_closed_to_writers(const std::string& key) const
    {
        other.refuse(driver::one_attempt(key));
        const auto waits = driver::exclusive(key);
        other.refuse(waits);
        other.abandon(waits);
    }

    const driver some = client();
    const driver other = client();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_readers, two_clients, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_writer_is_kept_out_by_the_reader_that_stays_longest_however_the_others_came_and_went)
{
    const auto extended = driver::shared("extended", 0, 1s);
    some.grant(extended);
    BOOST_TEST((some.extend(extended, 1h).status == extend_status::extended));

    const auto first = driver::shared("followed", 0, 1h), follower = driver::shared("followed", 0, 1s);
    some.grant(first);
    other.grant(follower);

    const auto stays = driver::shared("left"), gone = driver::shared("left"), released = driver::shared("left");
    for (const auto& each : {gone, stays, released})
        some.grant(each);
    some.abandon(gone);
    some.give_back(released);

    const auto shortened = driver::shared("shortened", 0, 1h), beside = driver::shared("shortened", 0, 1h);
    some.grant(shortened);
    other.grant(beside);
    BOOST_TEST((other.extend(beside, 500ms).status == extend_status::extended));

    contract::pass_real_time(io, 1500ms);
    for (const auto* const key : {"extended", "followed", "left", "shortened"}) {
        BOOST_TEST_CONTEXT(key)
        {
            BOOST_TEST(some.inspect(key).size() == 1U);
            check_closed_to_writers(key);
        }
    }
    for (const auto& each : {extended, first, stays, shortened})
        some.give_back(each);
    for (const auto* const key : {"extended", "followed", "left", "shortened"})
        other.grant(driver::one_attempt(key));
}

BOOST_AUTO_TEST_CASE(a_writer_that_waits_keeps_new_readers_out_until_it_was_let_in_or_gives_up)
{
    for (const bool gives_up : {false, true}) {
        const auto reader = driver::shared("k"), late = driver::shared("k");
        some.grant(reader);
        const auto writer = driver::exclusive("k");
        some.refuse(writer);
        BOOST_TEST(writer_of("k") == writer->token().hex());
        other.refuse(late);
        if (gives_up) {
            some.abandon(writer);
        } else {
            some.give_back(reader);
            some.grant(writer);
            some.give_back(writer);
        }
        BOOST_TEST(writer_of("k").empty());
        other.grant(late);
        other.give_back(late);
        if (gives_up)
            some.give_back(reader);
    }
}

BOOST_AUTO_TEST_CASE(a_writer_does_not_put_itself_in_the_place_of_one_that_waits)
{
    for (const bool gives_up : {false, true}) {
        const auto reader = driver::shared("k");
        some.grant(reader);
        const auto first = driver::exclusive("k"), second = driver::exclusive("k");
        some.refuse(first);
        other.refuse(second);
        BOOST_TEST(writer_of("k") == first->token().hex());
        other.abandon(second);
        BOOST_TEST(writer_of("k") == first->token().hex());
        if (gives_up) {
            some.abandon(first);
            some.give_back(reader);
        } else {
            some.give_back(reader);
            some.grant(first);
            some.give_back(first);
        }
        BOOST_TEST(writer_of("k").empty());
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
