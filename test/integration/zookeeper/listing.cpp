// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"
#include "support/foreign_cursors.hpp"
#include "support/pages.hpp"

#include <string>

namespace colock::testing {
namespace {

std::vector<lock> acquire_all(one_server& env, locker& by, int count)
{
    std::vector<running<lock>> asked;
    for (int i = 0; i < count; ++i)
        asked.push_back(start(env.io, by.acquire("k" + std::to_string(i))));
    std::vector<lock> held;
    for (auto& each : asked)
        held.push_back(each.get(env.io));
    return held;
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_listing)

BOOST_AUTO_TEST_CASE(pages_are_small_and_contain_each_lock_once)
{
    one_server f;
    for (const auto layout : {zookeeper::layout::standard, zookeeper::layout::curator_mutex}) {
        auto options = f.options();
        options.layout = layout;
        options.url += layout == zookeeper::layout::standard ? "/ours" : "/curators";
        auto& by = f.add(options);
        auto held = acquire_all(f, by, 1500);
        const auto pages = all_pages([&](const std::string& cursor) { return f.run(by.list_page({}, cursor)); });
        BOOST_TEST(pages.size() >= 6U);
        BOOST_TEST(count_locks(pages, 256) == held.size());
        const auto listed_keys = distinct_keys(pages);
        for (const auto& each : held) {
            if (!listed_keys.contains(each.key()))
                BOOST_ERROR(each.key() << " is not listed; held: " << each.held()
                                       << ", suspensions: " << f.events->suspensions);
        }
        BOOST_TEST(f.run(by.list({.key_prefix = "k1"})).size() == 611U);
        f.run(by.shutdown());
    }
}

BOOST_AUTO_TEST_CASE(shutdown_waits_for_a_list_in_flight)
{
    one_server f;
    auto& holder = f.add(f.options());
    auto held = acquire_all(f, holder, 600);
    // While operations are in flight, a close waits, for at most the operation timeout.
    const locker reader(f.make_adapter(f.options()), {.operation_timeout = 10min});
    BOOST_TEST(!f.run(reader.is_locked("other")));
    auto listed = start(f.io, reader.list());
    run_ready(f.io);
    BOOST_TEST(!listed.done());
    auto ends = start(f.io, reader.shutdown(1h));
    BOOST_TEST(ends.get(f.io).clean());
    BOOST_TEST(listed.get(f.io).size() == held.size());
}

BOOST_AUTO_TEST_CASE(foreign_cursors_are_refused)
{
    asio::io_context io;
    check_cursors_are_refused(*zookeeper::make_adapter(io.get_executor(), {.url = "zookeeper://127.0.0.1:1"}),
        {"x", "zookeeper", "zookeeper:", "zookeeper:0", "zookeeper:0g", "zookeeper:G0", "zookeeper:-1", "memory:0.0",
            "redis:1", "mongodb:tk"});
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
