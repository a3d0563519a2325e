// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "run.hpp"

#include <boost/test/unit_test_log.hpp>

#include <string>

namespace colock::testing {

namespace {

/// For exceptions without a source location: Boost.Test reports the last checkpoint.
void checkpoint(std::source_location where)
{
    boost::unit_test::unit_test_log.set_checkpoint(where.file_name(), where.line(), where.function_name());
}

[[noreturn]] void give_up(std::source_location where, const char* why)
{
    throw stuck(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " + why);
}

} // namespace

void run_until(
    asio::io_context& io, const std::function<bool()>& reached, std::source_location where, run_limits limits)
{
    checkpoint(where);
    const auto deadline = std::chrono::steady_clock::now() + limits.time;
    for (std::size_t handlers = 0; !reached(); ++handlers) {
        if (handlers == limits.handlers)
            give_up(where, "not reached after the greatest number of handlers");
        io.restart();
        if (io.poll_one() != 0)
            continue;
        if (io.stopped())
            give_up(where, "not reached, and nothing is left to run");
        if (io.run_one_until(deadline) == 0)
            give_up(where, "not reached in time");
    }
    checkpoint(where);
}

void run_ready(asio::io_context& io, std::source_location where, run_limits limits)
{
    checkpoint(where);
    io.restart();
    for (std::size_t handlers = 0; io.poll_one() != 0; ++handlers) {
        if (handlers == limits.handlers)
            give_up(where, "still busy after the greatest number of handlers");
    }
    io.restart();
}

} // namespace colock::testing
