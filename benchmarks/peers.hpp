// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"
#include "workload.hpp"

#include <colock/spi/adapter.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A program or library that is compared to others.
struct candidate
{
    enum class kind : unsigned char
    {
        /// colock, exclusive locks.
        ours,
        /// colock, shared locks.
        ours_shared,
        /// The requests of a pair, sent with as little work of the client as possible.
        raw,
        /// The requests of a pair, sent in a loop by the driver that colock uses, without colock.
        driver,
        /// A lock library in another language.
        peer,
    };

    std::string name;
    kind is;
    std::function<rate(const workload&)> run;
    /// Results of the rounds.
    std::vector<rate> found{};
};

/// Measures colock. Like the other libraries, each slice uses its own connections. The workers of a key are distributed
/// over the lockers.
[[nodiscard]] rate run_ours(
    const std::string& url, const workload& load, colock::lock_mode mode, std::size_t lockers = 1);

/// Returns the command-line options that every program accepts.
[[nodiscard]] std::string load_arguments(const workload& load);
/// Returns the command that runs one part of this program in another process.
[[nodiscard]] std::string own_command(const std::string& url, std::string_view part);
/// Runs `count` processes at the same time. Returns their total rate.
[[nodiscard]] rate run_processes(const std::string& command, std::size_t count = 1);
/// Prints the result of this process for run_processes(), and exits.
[[noreturn]] void print_and_exit(const rate& found);

/// Reads a file with one line for each program: its name, a tab, its command. A program without a command is reported
/// as missing.
/// \param processes number of processes of each program
[[nodiscard]] std::vector<candidate> read_programs(const std::string& file, report& results, std::size_t processes = 1);

/// Returns the CPU time of a server that scripts/servers.sh has started, or NaN for other servers.
/// \param name environment variable that contains the process id
[[nodiscard]] double process_cpu_us(const char* name);

/// Runs all programs in turn, so that changes of the machine's load affect all of them.
/// \param warming number of turns that are run first and not counted, so that the server is warm for every program
/// \param server_cpu_us returns the CPU time that the server has used since its start
void run_round(const workload& load, std::vector<candidate>& candidates, std::size_t warming,
    const std::function<double(const workload&)>& server_cpu_us);
/// Runs `rounds` rounds and replaces earlier results. If there are several rounds, a warm-up that is not counted comes
/// first.
void run_rounds(const workload& load, std::vector<candidate>& candidates, std::size_t rounds,
    const std::function<double(const workload&)>& server_cpu_us);
/// Returns text for the heading of a section, for example "median of 3 rounds".
[[nodiscard]] std::string describe_rounds(std::size_t rounds, std::size_t turns = 1);

/// Returns the median of `use` over the rates of all rounds.
[[nodiscard]] double median_over_rounds(const candidate& program, const std::function<double(const rate&)>& use);
[[nodiscard]] double speed(const candidate& program);
/// Returns the median ratio of the two rates. They are compared round by round, because the load of the machine in a
/// round affects both.
[[nodiscard]] double ratio(const candidate& program, const candidate& base);
/// Returns the rate if client and server have a processor each: the slower of the two limits the rate. Other load of
/// the machine hardly affects this number.
[[nodiscard]] double cpu_bound_rate(const candidate& program);

[[nodiscard]] const candidate& first(const std::vector<candidate>& candidates, candidate::kind is);
/// Returns null if there is no peer.
[[nodiscard]] const candidate* best_peer(const std::vector<candidate>& candidates);

/// Adds the CPU time of client and server per pair to the report.
void add_costs(const candidate& program, report& results, std::optional<double> limit = {});

} // namespace bench
