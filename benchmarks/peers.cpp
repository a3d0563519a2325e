// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "peers.hpp"

#include "statistics.hpp"

#include <colock/connect.hpp>
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
    colock::locker locker, const race& of, colock::lock_mode mode, progress& counted, std::size_t number)
{
    const colock::acquire_options how{.mode = mode};
    for (std::size_t key = number % of.keys; !counted.stopping; key = of.next(key)) {
        const auto start = of.contended() ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
        colock::lock lock = co_await locker.acquire(race::name(key), how);
        co_await lock.release();
        ++counted.pairs;
        if (of.contended())
            counted.longest_turn = std::max(counted.longest_turn, std::chrono::steady_clock::now() - start);
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
        answer.at("pairs").to_number<double>(), answer.at("longest_turn_ms").to_number<double>()};
    if (found.pairs_per_second <= 0.0)
        throw std::runtime_error("not one pair from: " + line);
    return found;
}

/// Turns of the same length.
rate together(std::span<const rate> turns)
{
    rate all;
    double counted = 0.0;
    for (const rate& each : turns) {
        counted += each.pairs_per_second;
        all.cpu_us_per_pair += each.pairs_per_second * each.cpu_us_per_pair;
        all.pairs += each.pairs;
        all.server_us_per_pair += each.pairs * each.server_us_per_pair;
        all.longest_turn_ms = std::max(all.longest_turn_ms, each.longest_turn_ms);
    }
    all.pairs_per_second = counted / static_cast<double>(turns.size());
    all.cpu_us_per_pair /= counted;
    all.server_us_per_pair /= std::max(all.pairs, 1.0);
    return all;
}

} // namespace

rate run_ours(const std::string& url, const race& of, colock::lock_mode mode, std::size_t count)
{
    asio::io_context io{1};
    std::vector<colock::locker> lockers;
    while (lockers.size() < count)
        lockers.emplace_back(colock::make_adapter(io.get_executor(), url), colock::locker_options{.ttl = of.ttl});
    return run_workers(io, of, [&](progress& counted, std::size_t number) {
        return work(lockers[number / of.keys % count], of, mode, counted, number);
    });
}

std::string load_of(const race& of)
{
    auto load = " --keys " + std::to_string(of.keys) + " --concurrency " + std::to_string(of.in_flight) +
                " --seconds " + std::to_string(std::chrono::duration<double>(of.time).count());
    if (of.begins)
        load += " --begins " + std::to_string(std::chrono::system_clock::to_time_t(*of.begins));
    return load;
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
        all.longest_turn_ms = std::max(all.longest_turn_ms, found.longest_turn_ms);
    }
    all.cpu_us_per_pair = used / all.pairs_per_second;
    return all;
}

void answer(const rate& found)
{
    std::cout << boost::json::object{{"pairs_per_second", found.pairs_per_second},
                     {"cpu_us_per_pair", found.cpu_us_per_pair}, {"pairs", found.pairs},
                     {"longest_turn_ms", found.longest_turn_ms}}
              << std::endl;
    std::exit(0);
}

std::vector<rival> read_programs(const std::string& file, report& found, std::size_t processes)
{
    std::vector<rival> programs;
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
            programs.push_back({std::move(name), rival::kind::peer, [command, processes](const race& of) {
                                    return run_processes(command + " --host " + of.host + " --port " + of.port +
                                                             " --ttl " + std::to_string(of.ttl.count()) + load_of(of),
                                        processes);
                                }});
    }
    if (!missing.empty())
        found.fact("missing", missing);
    return programs;
}

double process_cpu_us(const char* name)
{
    const char* const process = std::getenv(name);
    std::ifstream told("/proc/" + std::string(process ? process : "none") + "/stat");
    if (!told)
        return std::numeric_limits<double>::quiet_NaN();
    // Behind its name, which may have blanks: the eleventh and twelfth after the state, which comes first.
    told.ignore(std::numeric_limits<std::streamsize>::max(), ')');
    std::string skipped;
    for (int i = 0; i < 11; ++i)
        told >> skipped;
    double user = 0.0;
    double system = 0.0;
    told >> user >> system;
    return (user + system) * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void run_round(const race& of, std::vector<rival>& rivals, std::size_t warming,
    const std::function<double(const race&)>& server_cpu_us)
{
    std::vector<std::vector<rate>> found(rivals.size());
    // Each begins with another rival: what one leaves behind in the server is not always to the cost of the same.
    const auto begin = rivals.front().found.size();
    std::clog << "bench: " << of.in_flight << " in flight on " << of.keys << " keys, round " << begin + 1 << std::endl;
    for (std::size_t turn = 0; turn < warming + of.turns; ++turn)
        for (std::size_t i = 0; i < rivals.size(); ++i) {
            const auto next = (begin + turn + i) % rivals.size();
            const auto before = server_cpu_us(of);
            auto last = rivals[next].run(of);
            last.server_us_per_pair = (server_cpu_us(of) - before) / std::max(last.pairs, 1.0);
            if (turn >= warming)
                found[next].push_back(last);
        }
    for (std::size_t i = 0; i < rivals.size(); ++i)
        rivals[i].found.push_back(together(found[i]));
}

void run_rounds(const race& of, std::vector<rival>& rivals, std::size_t rounds,
    const std::function<double(const race&)>& server_cpu_us)
{
    for (rival& each : rivals)
        each.found.clear();
    for (std::size_t round = 0; round < rounds; ++round)
        run_round(of, rivals, round == 0 && rounds > 1 ? of.turns : 0, server_cpu_us);
}

std::string of_rounds(std::size_t rounds, std::size_t turns)
{
    const auto all = rounds == 1 ? "one round" : "median of " + std::to_string(rounds) + " rounds";
    return turns == 1 ? all : all + " of " + std::to_string(turns) + " turns";
}

double typical(const rival& of, const std::function<double(const rate&)>& use)
{
    std::vector<double> values;
    for (const rate& each : of.found)
        values.push_back(use(each));
    return median(std::move(values));
}

double speed(const rival& of)
{
    return typical(of, [](const rate& each) { return each.pairs_per_second; });
}

double ratio(const rival& of, const rival& to)
{
    std::vector<double> values;
    for (std::size_t round = 0; round < of.found.size(); ++round)
        values.push_back(of.found[round].pairs_per_second / to.found[round].pairs_per_second);
    return median(std::move(values));
}

double possible(const rival& of)
{
    return typical(of, [](const rate& each) { return 1e6 / std::max(each.cpu_us_per_pair, each.server_us_per_pair); });
}

const rival& first(const std::vector<rival>& rivals, rival::kind is)
{
    return *std::ranges::find(rivals, is, &rival::is);
}

const rival* best_peer(const std::vector<rival>& rivals)
{
    const rival* best = nullptr;
    for (const rival& each : rivals)
        if (each.is == rival::kind::peer && (!best || speed(each) > speed(*best)))
            best = &each;
    return best;
}

void add_costs(const rival& of, report& found, std::optional<double> limit)
{
    found.add({of.name + ", CPU per pair", typical(of, [](const rate& round) { return round.cpu_us_per_pair; }), "us",
        limit});
    found.add({of.name + ", the server's CPU per pair",
        typical(of, [](const rate& round) { return round.server_us_per_pair; }), "us"});
}

} // namespace bench
