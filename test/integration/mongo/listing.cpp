// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_scene.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"

#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// As many locks of somebody who is never heard of again.
void leave_behind(mongo_scene& on, int count)
{
    const driver speak(on.io, on.last);
    for (int i = 0; i < count; ++i)
        speak.grant(driver::exclusive("k" + std::to_string(i), 100ms));
    run_until(on.io, [&] { return speak.list().empty(); });
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_listing, *boost::unit_test::precondition(has_mongodb))

BOOST_FIXTURE_TEST_CASE(a_purge_of_many_goes_in_steps_and_leaves_nothing_but_fences, mongo_scene)
{
    const auto ours = add();
    leave_behind(*this, 600);
    auto held = run(ours.acquire("held"));
    const auto step = run(last->purge(0));
    BOOST_TEST(!step.error);
    BOOST_TEST((!step.next.empty() && step.locks.size() <= 300U));
    BOOST_TEST(run(ours.purge(100)).size() == 100U);
    BOOST_TEST(run(ours.purge()).size() == 500 - step.locks.size());
    BOOST_TEST(run(ours.purge()).empty());
    BOOST_TEST(held.held());
    run(held.release(on_failure::raise));
    // As if all had been free for two days.
    static_cast<void>(ask(
        R"({"update":"locks","updates":[{"q":{"x":{"$exists":true}},"u":{"$set":{"p":{"$date":0}}},"multi":true}]})"));
    BOOST_TEST(run(ours.purge()).empty());
    const auto left = ask(R"({"find":"locks","filter":{"x":{"$exists":true}}})").to_json();
    BOOST_TEST(left.find("\"f\"") == std::string::npos, left);
}

BOOST_AUTO_TEST_CASE(a_cursor_of_others_is_refused_before_anything_is_sent)
{
    asio::io_context io;
    // Nobody is there.
    const auto backend = mongo::make_adapter(io.get_executor(), {.url = "mongodb://127.0.0.1:1"});
    for (const std::string cursor :
        {"x", "tk", "mongodb", "mongodb:", "mongodb:x", "mongodb:t\xff", "memory:0.0", "redis:1", "zookeeper:00"})
    {
        for (const auto& which : {filter{}, filter{.key = "k"}}) {
            failure_ptr why;
            backend->start_list(which, cursor, [&](list_outcome outcome) { why = std::move(outcome.error); });
            BOOST_TEST_REQUIRE(why, cursor);
            BOOST_TEST((why->code == errc::invalid_options));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
