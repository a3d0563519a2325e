// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Measures the numbers of docs/benchmarks.md: ratios within one run, counts, and the CPU time of the event loop.

#include "growth.hpp"
#include "listing.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "remote.hpp"
#include "report.hpp"

#include "../tools/arguments.hpp"
#include "../tools/built_backends.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/version.hpp>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void write(const std::string& file, const std::string& text)
{
    if (!file.empty() && !(std::ofstream(file) << text))
        throw std::runtime_error("cannot write " + file);
}

bench::chart run(const bench::options& settings, bench::report& results)
{
    if (settings.part == "listing") {
        bench::measure_listing(settings, results);
        return {};
    }
    if (settings.part == "growth") {
        boost::asio::io_context io{1};
        bench::measure_growth(io,
            colock::locker(colock::make_adapter(io.get_executor(),
                settings.backend == "memory" ? "memory:" : settings.backend, tools::built_backends())),
            bench::growth_pairs(settings.seconds), results);
        return {};
    }
    if (settings.backend != "memory" && settings.backend != "memory:")
        return bench::run_remote(settings, results);
    bench::chart ratios{.title = "Memory: uncontended acquire+release, multiples of the floor; the line is the limit",
        .bars = {},
        .unit = "x",
        .limit = bench::uncontended_limit};
    bench::run_memory(settings, results);
    ratios.bars = results.rows("Uncontended", "x");
    for (auto& [name, ratio] : ratios.bars)
        name.resize(name.rfind(", ratio"));
    return ratios;
}

} // namespace

int main(int count, char** words)
try {
    bench::options settings;
    std::string file;
    std::string page;
    std::string picture;
    bool check = false;
    bool check_counts = false;
    bool threaded = false;
    const auto early =
        tools::arguments("colock-bench: the cost of a lock, compared to the minimum cost in the same run")
            .value("backend", settings.backend, "URL", "the backend; default: memory:")
            .value(
                "concurrency", settings.concurrency, "N", "number of coroutines of the load; default: 64", 1, 1'000'000)
            .value("keys", settings.keys, "N", "number of keys of the load; default: 1000", 1, 1'000'000)
            .value("seconds", settings.seconds, "S", "duration of each part of the run; default: 2", 0.01, 3600.0)
            .value("part", settings.part, "NAME",
                "runs one part; default: all parts except listing, growth and, for Redis, cluster and fail-over. All "
                "backends: uncontended, waiters, hand-off, load, listing, growth. Memory: verbs, allocations, threads. "
                "Backends with a server: forms. Redis: contended, groups, stalls, cluster, fail-over, threads. "
                "ZooKeeper: contended, processes, fail-over, many-waiters, resumptions, stalls. MongoDB: readers, "
                "groups, memory, stalls")
            .value("peers", settings.peers, "FILE",
                "with a Redis, ZooKeeper or MongoDB backend: also measures the programs that the file lists "
                "(scripts/bench.sh --peers)")
            .value("rounds", settings.rounds, "N", "with --peers: number of measurements of each library; default: 3",
                1, 1000)
            .value("begins", settings.begins, "SECOND",
                "for one of several processes: when it starts to count, in seconds since 1970", 0,
                std::numeric_limits<std::int64_t>::max())
            .value("json", file, "FILE", "also write the results as JSON")
            .value("markdown", page, "FILE", "also write the results as tables")
            .value("svg", picture, "FILE", "also write a chart of the uncontended ratios")
            .flag("threaded", threaded,
                "start and end a thread first, so that mutexes and reference counts work as in a program with threads")
            .flag("check", check, "exit with 1 if a limit is missed")
            .flag("check-counts", check_counts, "the same, only for numbers that do not depend on time")
            .parse(count, words);
    if (early)
        return *early;

    if (threaded)
        std::thread([] {}).join();

    bench::report results;
    // Only the scheme is printed, because the URL may contain a password.
    results.fact("backend", settings.backend.substr(0, settings.backend.find(':')));
    results.fact("compiler", __VERSION__);
    results.fact("boost", BOOST_LIB_VERSION);
    results.fact("processors", std::to_string(std::thread::hardware_concurrency()));
    results.fact("threads so far", threaded ? "two" : "one");
    const auto picture_of = run(settings, results);

    results.print(std::cout);
    write(file, results.json() + '\n');
    write(page, results.markdown());
    if (!picture_of.bars.empty())
        write(picture, picture_of.svg());
    const bool missed = results.missed(bench::kind::counted) || (check && results.missed(bench::kind::timed));
    return (check || check_counts) && missed ? 1 : 0;
} catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 2;
}
