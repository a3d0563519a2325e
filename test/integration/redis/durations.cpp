// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include "server.hpp"
#include "support/print.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <limits>
#include <string>

namespace colock::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct duration_row
{
    const char* name;
    std::function<void(redis::options&, milliseconds)> set;
};

const duration_row rows[] = {
    {"operation_timeout", [](redis::options& into, milliseconds span) { into.operation_timeout = span; }},
    {"connect_timeout", [](redis::options& into, milliseconds span) { into.connect_timeout = span; }},
    {"health_interval", [](redis::options& into, milliseconds span) { into.health_interval = span; }},
    {"idle_timeout", [](redis::options& into, milliseconds span) { into.idle_timeout = span; }},
    {"poll_interval", [](redis::options& into, milliseconds span) { into.poll_interval = span; }},
};

/// The minimum, -1, 0, 1, the first value that overflows as nanoseconds, and the maximum with its predecessor.
const milliseconds extremes[] = {milliseconds::min(), -1ms, 0ms, 1ms,
    milliseconds(std::numeric_limits<std::int64_t>::max() / 1'000'000 + 1), milliseconds::max() - 1ms,
    milliseconds::max()};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_durations)

BOOST_AUTO_TEST_CASE(each_duration_option_is_used_or_refused_at_its_limits)
{
    redis_server server;
    for (const auto& row : rows) {
        for (const auto span : extremes) {
            BOOST_TEST_CONTEXT(row.name << " of " << span.count() << " ms")
            {
                redis::options settings{.url = server.url()};
                row.set(settings, span);
                asio::io_context io;
                std::shared_ptr<adapter> backend;
                try {
                    backend = redis::make_adapter(io.get_executor(), settings);
                } catch (const validation_error& refused) {
                    BOOST_TEST(refused.detail().find(std::string(row.name) + " is " + std::to_string(span.count())) !=
                                   std::string::npos,
                        refused.detail());
                    continue;
                }
                colock::locker by(backend);
                BOOST_TEST(run_coro(io, by.with_lock("k", [](lock& held) { return held.held(); })));
                BOOST_TEST(run_coro(io, by.shutdown(milliseconds::max())).clean());
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
