// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "peers.hpp"

#include "../tools/built_backends.hpp"
#include "statistics.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>

#include <unistd.h>

namespace asio = boost::asio;

namespace bench {
namespace {

asio::awaitable<void> work(
    colock::locker locker, const workload& load, colock::lock_mode mode, progress& counted, std::size_t number)
{
    const colock::acquire_options options{.mode = mode};
    for (std::size_t key = number % load.keys; !counted.stopping; key = load.next(key)) {
        const auto start =
            load.contended() ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
        colock::lock lock = co_await locker.acquire(workload::name(key), options);
        co_await lock.release();
        ++counted.pairs;
        if (load.contended())
            counted.max_pair_time = std::max(counted.max_pair_time, std::chrono::steady_clock::now() - start);
    }
}

using process = std::unique_ptr<FILE, int (*)(FILE*)>;

rate answer_of(const process& output, const std::string& line)
{
    std::array<char, 4096> text{};
    if (!output || !std::fgets(text.data(), static_cast<int>(text.size()), output.get()))
        throw std::runtime_error("no answer from: " + line);
    const auto answer = boost::json::parse(text.data());
    rate found{answer.at("pairs_per_second").to_number<double>(), answer.at("cpu_us_per_pair").to_number<double>(),
        answer.at("pairs").to_number<double>(), answer.at("max_pair_time_ms").to_number<double>()};
    if (found.pairs_per_second <= 0.0)
        throw std::runtime_error("not one pair from: " + line);
    return found;
}

/// Returns the average of turns of equal length.
rate average_of(std::span<const rate> turns)
{
    rate all;
    double counted = 0.0;
    for (const rate& each : turns) {
        counted += each.pairs_per_second;
        all.cpu_us_per_pair += each.pairs_per_second * each.cpu_us_per_pair;
        all.pairs += each.pairs;
        all.server_us_per_pair += each.pairs * each.server_us_per_pair;
        all.max_pair_time_ms = std::max(all.max_pair_time_ms, each.max_pair_time_ms);
    }
    all.pairs_per_second = counted / static_cast<double>(turns.size());
    all.cpu_us_per_pair /= counted;
    all.server_us_per_pair /= std::max(all.pairs, 1.0);
    return all;
}

} // namespace

rate run_ours(const std::string& url, const workload& load, colock::lock_mode mode, std::size_t count)
{
    asio::io_context io{1};
    std::vector<colock::locker> lockers;
    while (lockers.size() < count)
        lockers.emplace_back(colock::make_adapter(io.get_executor(), url, tools::built_backends()),
            colock::locker_options{.ttl = load.ttl});
    return run_workers(io, load, [&](progress& counted, std::size_t number) {
        return work(lockers[number / load.keys % count], load, mode, counted, number);
    });
}

std::string load_arguments(const workload& load)
{
    auto arguments = " --keys " + std::to_string(load.keys) + " --concurrency " + std::to_string(load.in_flight) +
                     " --seconds " + std::to_string(std::chrono::duration<double>(load.time).count());
    if (load.start_time)
        arguments += " --begins " + std::to_string(std::chrono::system_clock::to_time_t(*load.start_time));
    return arguments;
}

std::string own_command(const std::string& url, std::string_view part)
{
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    return "'" + self + "' --backend '" + url + "' --part " + std::string(part);
}

rate run_processes(const std::string& line, std::size_t count)
{
    std::vector<process> running;
    while (running.size() < count)
        running.emplace_back(popen(line.c_str(), "r"), pclose);
    rate all;
    double used = 0.0;
    for (const auto& each : running) {
        const auto found = answer_of(each, line);
        all.pairs_per_second += found.pairs_per_second;
        used += found.pairs_per_second * found.cpu_us_per_pair;
        all.pairs += found.pairs;
        all.max_pair_time_ms = std::max(all.max_pair_time_ms, found.max_pair_time_ms);
    }
    all.cpu_us_per_pair = used / all.pairs_per_second;
    return all;
}

void print_and_exit(const rate& found)
{
    std::cout << boost::json::object{{"pairs_per_second", found.pairs_per_second},
                     {"cpu_us_per_pair", found.cpu_us_per_pair}, {"pairs", found.pairs},
                     {"max_pair_time_ms", found.max_pair_time_ms}}
              << std::endl;
    std::exit(0);
}

std::vector<candidate> read_programs(const std::string& file, report& results, std::size_t processes)
{
    std::vector<candidate> programs;
    if (file.empty())
        return programs;
    std::string missing;
    std::ifstream lines(file);
    if (!lines)
        throw std::runtime_error("cannot read " + file);
    for (std::string line; std::getline(lines, line);) {
        const auto tabulator = line.find('\t');
        auto name = line.substr(0, tabulator);
        const auto command = tabulator == line.npos ? std::string() : line.substr(tabulator + 1);
        if (command.empty())
            (missing += missing.empty() ? "" : ", ") += name;
        else
            programs.push_back({std::move(name), candidate::kind::peer, [command, processes](const workload& load) {
                                    return run_processes(command + " --host " + load.host + " --port " + load.port +
                                                             " --ttl " + std::to_string(load.ttl.count()) +
                                                             load_arguments(load),
                                        processes);
                                }});
    }
    if (!missing.empty())
        results.fact("missing", missing);
    return programs;
}

double process_cpu_us(const char* name)
{
    const char* const process = std::getenv(name);
    std::ifstream status("/proc/" + std::string(process ? process : "none") + "/stat");
    if (!status)
        return std::numeric_limits<double>::quiet_NaN();
    // The name of the process may contain spaces. After it come the state and further fields; user and system time are
    // the eleventh and twelfth after the state.
    status.ignore(std::numeric_limits<std::streamsize>::max(), ')');
    std::string skipped;
    for (int i = 0; i < 11; ++i)
        status >> skipped;
    double user = 0.0;
    double system = 0.0;
    status >> user >> system;
    return (user + system) * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void run_round(const workload& load, std::vector<candidate>& candidates, std::size_t warming,
    const std::function<double(const workload&)>& server_cpu_us)
{
    std::vector<std::vector<rate>> found(candidates.size());
    // Each round starts with another library, because a library may leave work in the server that slows down the next
    // one.
    const auto begin = candidates.front().found.size();
    std::clog << "bench: " << load.in_flight << " in flight on " << load.keys << " keys, round " << begin + 1
              << std::endl;
    for (std::size_t turn = 0; turn < warming + load.turns; ++turn)
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const auto next = (begin + turn + i) % candidates.size();
            const auto before = server_cpu_us(load);
            auto last = candidates[next].run(load);
            last.server_us_per_pair = (server_cpu_us(load) - before) / std::max(last.pairs, 1.0);
            if (turn >= warming)
                found[next].push_back(last);
        }
    for (std::size_t i = 0; i < candidates.size(); ++i)
        candidates[i].found.push_back(average_of(found[i]));
}

void run_rounds(const workload& load, std::vector<candidate>& candidates, std::size_t rounds,
    const std::function<double(const workload&)>& server_cpu_us)
{
    for (candidate& each : candidates)
        each.found.clear();
    for (std::size_t round = 0; round < rounds; ++round)
        run_round(load, candidates, round == 0 && rounds > 1 ? load.turns : 0, server_cpu_us);
}

std::string describe_rounds(std::size_t rounds, std::size_t turns)
{
    const auto all = rounds == 1 ? "one round" : "median of " + std::to_string(rounds) + " rounds";
    return turns == 1 ? all : all + " of " + std::to_string(turns) + " turns";
}

double median_over_rounds(const candidate& program, const std::function<double(const rate&)>& use)
{
    std::vector<double> values;
    for (const rate& each : program.found)
        values.push_back(use(each));
    return median(std::move(values));
}

double speed(const candidate& program)
{
    return median_over_rounds(program, [](const rate& each) { return each.pairs_per_second; });
}

double ratio(const candidate& program, const candidate& base)
{
    std::vector<double> values;
    for (std::size_t round = 0; round < program.found.size(); ++round)
        values.push_back(program.found[round].pairs_per_second / base.found[round].pairs_per_second);
    return median(std::move(values));
}

double cpu_bound_rate(const candidate& program)
{
    return median_over_rounds(
        program, [](const rate& each) { return 1e6 / std::max(each.cpu_us_per_pair, each.server_us_per_pair); });
}

const candidate& first(const std::vector<candidate>& candidates, candidate::kind is)
{
    return *std::ranges::find(candidates, is, &candidate::is);
}

const candidate* best_peer(const std::vector<candidate>& candidates)
{
    const candidate* best = nullptr;
    for (const candidate& each : candidates)
        if (each.is == candidate::kind::peer && (!best || speed(each) > speed(*best)))
            best = &each;
    return best;
}

void add_costs(const candidate& program, report& results, std::optional<double> limit)
{
    results.add({program.name + ", CPU per pair",
        median_over_rounds(program, [](const rate& round) { return round.cpu_us_per_pair; }), "us", limit});
    results.add({program.name + ", the server's CPU per pair",
        median_over_rounds(program, [](const rate& round) { return round.server_us_per_pair; }), "us"});
}

} // namespace bench
