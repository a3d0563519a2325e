// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "peers.hpp"

#include "alternation.hpp"
#include "rivals.hpp"
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
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;

namespace bench {
namespace {

struct rival
{
    enum class kind : unsigned char
    {
        ours,
        ours_shared,
        raw,
        driver,
        peer,
    };

    std::string name;
    kind is;
    std::function<rate(const race&)> run;
    /// Of each round.
    std::vector<rate> found{};
};

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

/// Each slice has connections of its own, as those of the others have. A key's workers are spread over the lockers.
rate run_ours(const std::string& url, const race& of, colock::lock_mode mode, std::size_t count = 1)
{
    asio::io_context io{1};
    std::vector<colock::locker> lockers;
    while (lockers.size() < count)
        lockers.emplace_back(colock::make_adapter(io.get_executor(), url), colock::locker_options{.ttl = of.ttl});
    return run_workers(io, of, [&](progress& counted, std::size_t number) {
        return work(lockers[number / of.keys % count], of, mode, counted, number);
    });
}

/// What colock stores at a key.
std::string stored_value(const std::string& url, const race& of)
{
    std::string value;
    asio::io_context io{1};
    const colock::locker impatient(
        colock::make_adapter(io.get_executor(), url), {.retry = colock::retry_policy::never()});
    run_until_done(io, [](colock::locker probe, const race& where, std::string& found) -> asio::awaitable<void> {
        colock::lock lock = co_await probe.acquire("load:probe");
        found = stored_at(where, "{colock}:load:probe");
        co_await lock.release();
    }(impatient, of, value));
    return value;
}

/// The options that every program has.
std::string load_of(const race& of)
{
    return " --keys " + std::to_string(of.keys) + " --concurrency " + std::to_string(of.in_flight) + " --seconds " +
           std::to_string(std::chrono::duration<double>(of.time).count());
}

rate answer_of(const std::string& line)
{
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(line.c_str(), "r"), pclose);
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

rate run_program(const std::string& command, const race& of)
{
    return answer_of(command + " --host " + of.host + " --port " + of.port + " --ttl " +
                     std::to_string(of.ttl.count()) + load_of(of));
}

/// In a process of its own, as the others: the driver's resolver makes a thread, and from then on a process is slower.
rate run_driver_apart(const std::string& url, const race& of)
{
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    return answer_of("'" + self + "' --backend '" + url + "' --part " + std::string(driver_program) + load_of(of));
}

/// A line for each program: its name, a tabulator, its command; without a command it is missing.
std::vector<rival> read_programs(const std::string& file, report& found)
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
            programs.push_back(
                {std::move(name), rival::kind::peer, [command](const race& of) { return run_program(command, of); }});
    }
    if (!missing.empty())
        found.fact("missing", missing);
    return programs;
}

/// The median over the rounds of what `use` makes of each one's rate.
template <class Use>
double typical(const rival& of, Use use)
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
/// The rounds are compared one by one: what happened to the machine in a round happened to both.
double ratio(const rival& of, const rival& to)
{
    std::vector<double> values;
    for (std::size_t round = 0; round < of.found.size(); ++round)
        values.push_back(of.found[round].pairs_per_second / to.found[round].pairs_per_second);
    return median(std::move(values));
}

/// With a processor each for client and server, the busier of them sets the rate. Other load hardly shows in it.
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

void judge(const race& of, const std::vector<rival>& rivals, report& found)
{
    const auto& ours = first(rivals, rival::kind::ours);
    const auto& raw = first(rivals, rival::kind::raw);
    const bool alone = of.in_flight == 1;
    for (const rival& each : rivals) {
        found.add({each.name + ", pairs per second", speed(each), "/s"});
        if (&each == &raw)
            continue;
        measurement reached{each.name + " / raw", ratio(each, raw), "x"};
        if (&each == &ours && !alone)
            reached.least = 0.75;
        found.add(reached);
    }
    if (alone) {
        measurement beside{"colock / driver's loop", ratio(ours, first(rivals, rival::kind::driver)), "x"};
        beside.least = 0.85;
        found.add(beside);
    }
    if (const auto* const best = best_peer(rivals)) {
        for (const rival& each : rivals) {
            if (each.is != rival::kind::ours && each.is != rival::kind::ours_shared)
                continue;
            measurement beside{each.name + " / " + best->name + ", the best peer", ratio(each, *best), "x"};
            if (!alone)
                beside.least = each.is == rival::kind::ours ? 3.5 : 2.0;
            found.add(beside);
        }
    }
    for (const rival& each : rivals) {
        measurement cost{
            each.name + ", CPU per pair", typical(each, [](const rate& round) { return round.cpu_us_per_pair; }), "us"};
        if (&each == &ours && of.in_flight == 64)
            cost.limit = 2.0;
        found.add(cost);
        found.add({each.name + ", the server's CPU per pair",
            typical(each, [](const rate& round) { return round.server_us_per_pair; }), "us"});
    }
    if (const auto* const best = best_peer(rivals))
        found.add({"colock / " + best->name + ", were nothing else running", possible(ours) / possible(*best), "x"});
    found.add({"colock / raw, were nothing else running", possible(ours) / possible(raw), "x"});
}

/// All in turn, so that what happens to the machine happens to all of them.
void run_rounds(const race& of, std::vector<rival>& rivals, std::size_t rounds)
{
    for (rival& each : rivals)
        each.found.clear();
    for (std::size_t round = 0; round < rounds; ++round)
        for (rival& each : rivals) {
            const auto before = server_cpu_us(of);
            each.found.push_back(each.run(of));
            rate& last = each.found.back();
            last.server_us_per_pair = (server_cpu_us(of) - before) / std::max(last.pairs, 1.0);
        }
}

race race_of(const options& settings)
{
    auto of = race_at(settings.backend);
    if (!of)
        throw std::invalid_argument("races need --backend redis://HOST:PORT");
    of->time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9));
    return *of;
}

std::string of_rounds(std::size_t rounds)
{
    return rounds == 1 ? "one round" : "median of " + std::to_string(rounds) + " rounds";
}

void judge_contended(const std::vector<rival>& rivals, report& found)
{
    const auto* const best = best_peer(rivals);
    for (const rival& each : rivals) {
        found.add({each.name + ", pairs per second", speed(each), "/s"});
        if (!best || each.is == rival::kind::peer)
            continue;
        measurement beside{each.name + " / " + best->name + ", the best peer", ratio(each, *best), "x"};
        beside.least = 2.0;
        found.add(beside);
    }
    for (const rival& each : rivals)
        found.add({each.name + ", longest turn", typical(each, [](const rate& round) { return round.longest_turn_ms; }),
            "ms"});
    for (const rival& each : rivals) {
        found.add({each.name + ", CPU per pair", typical(each, [](const rate& round) { return round.cpu_us_per_pair; }),
            "us"});
        found.add({each.name + ", the server's CPU per pair",
            typical(each, [](const rate& round) { return round.server_us_per_pair; }), "us"});
    }
    for (const rival& each : rivals)
        if (best && each.is != rival::kind::peer)
            found.add({each.name + " / " + best->name + ", were nothing else running", possible(each) / possible(*best),
                "x"});
}

} // namespace

void run_driver_program(const options& settings)
{
    race of = race_of(settings);
    of.in_flight = settings.concurrency;
    of.keys = settings.keys;
    const auto found = run_driver(of, stored_value(settings.backend, of));
    std::cout << boost::json::object{{"pairs_per_second", found.pairs_per_second},
                     {"cpu_us_per_pair", found.cpu_us_per_pair}, {"pairs", found.pairs}, {"longest_turn_ms", 0.0}}
              << std::endl;
    std::exit(0);
}

chart run_uncontended_race(const options& settings, report& found)
{
    race of = race_of(settings);
    const auto value = stored_value(settings.backend, of);
    const auto ours = [&](colock::lock_mode mode) {
        return [&, mode](const race& now) { return run_ours(settings.backend, now, mode); };
    };

    std::vector<rival> rivals{
        {"colock", rival::kind::ours, ours(colock::lock_mode::exclusive)},
        {"raw", rival::kind::raw, [&](const race& now) { return run_raw(now, value); }},
        {"driver's loop", rival::kind::driver,
            [&](const race& now) { return run_driver_apart(settings.backend, now); }},
        {"colock, shared", rival::kind::ours_shared, ours(colock::lock_mode::shared)},
    };
    for (rival& each : read_programs(settings.peers, found))
        rivals.push_back(std::move(each));

    chart drawn{.title = "Redis: uncontended acquire+release, as a share of the same commands sent raw",
        .bars = {},
        .unit = "x",
        .limit = 0.75};
    for (const std::size_t in_flight : {1U, 64U, 1000U}) {
        of.in_flight = in_flight;
        of.keys = in_flight * 100;
        run_rounds(of, rivals, settings.rounds);
        found.begin("Redis: " + std::to_string(in_flight) + " in flight, each on keys of its own, " +
                    of_rounds(settings.rounds));
        judge(of, rivals, found);
        for (const rival& each : rivals)
            if (each.is != rival::kind::raw)
                drawn.bars.emplace_back(std::to_string(in_flight) + " in flight, " + each.name,
                    ratio(each, first(rivals, rival::kind::raw)));
    }
    return drawn;
}

void run_contended_race(const options& settings, report& found)
{
    race of = race_of(settings);
    const auto ours = [&](std::size_t lockers) {
        return [&, lockers](
                   const race& now) { return run_ours(settings.backend, now, colock::lock_mode::exclusive, lockers); };
    };
    std::vector<rival> rivals{
        {"colock", rival::kind::ours, ours(1)},
        {"colock, two adapters", rival::kind::ours, ours(2)},
    };
    for (rival& each : read_programs(settings.peers, found))
        rivals.push_back(std::move(each));
    for (const std::size_t in_flight : {64U, 1000U}) {
        of.in_flight = in_flight;
        of.keys = in_flight / 8;
        run_rounds(of, rivals, settings.rounds);
        found.begin("Redis: " + std::to_string(in_flight) + " contend for " + std::to_string(of.keys) +
                    " keys, eight for each, " + of_rounds(settings.rounds));
        judge_contended(rivals, found);
    }
}

} // namespace bench
