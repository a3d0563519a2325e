// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"
#include "rivals.hpp"

#include <colock/spi/adapter.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// One of those that take turns.
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

/// Each slice has connections of its own, as those of the others have. A key's workers are spread over the lockers.
[[nodiscard]] rate run_ours(const std::string& url, const race& of, colock::lock_mode mode, std::size_t lockers = 1);

/// The options that every program has.
[[nodiscard]] std::string load_of(const race& of);
/// How this program runs one of its own parts as another process.
[[nodiscard]] std::string own_command(const std::string& url, std::string_view part);
/// What so many processes, which run at the same time, make together.
[[nodiscard]] rate run_processes(const std::string& command, std::size_t count = 1);
/// The answer of a program, and its end.
[[noreturn]] void answer(const rate& found);

/// A line for each program: its name, a tabulator, its command; without a command it is missing.
/// \param processes in which each runs
[[nodiscard]] std::vector<rival> read_programs(const std::string& file, report& found, std::size_t processes = 1);

/// Of a server that scripts/servers.sh has started; that of others is not known.
/// \param name of the variable that says which process it is
[[nodiscard]] double process_cpu_us(const char* name);

/// All in turn, so that what happens to the machine happens to all of them.
/// \param warming turns before it that are not counted, so that nobody has to warm up the server for the others
/// \param server_cpu_us CPU time that the server has used since its start
void run_round(const race& of, std::vector<rival>& rivals, std::size_t warming,
    const std::function<double(const race&)>& server_cpu_us);
/// As many as that, after one that is not counted if they are several; what was found before is forgotten.
void run_rounds(const race& of, std::vector<rival>& rivals, std::size_t rounds,
    const std::function<double(const race&)>& server_cpu_us);
[[nodiscard]] std::string of_rounds(std::size_t rounds, std::size_t turns = 1);

/// The median over the rounds of what `use` makes of each one's rate.
[[nodiscard]] double typical(const rival& of, const std::function<double(const rate&)>& use);
[[nodiscard]] double speed(const rival& of);
/// The rounds are compared one by one: what happened to the machine in a round happened to both.
[[nodiscard]] double ratio(const rival& of, const rival& to);
/// With a processor each for client and server, the busier of them sets the rate. Other load hardly shows in it.
[[nodiscard]] double possible(const rival& of);

[[nodiscard]] const rival& first(const std::vector<rival>& rivals, rival::kind is);
/// Null: there is none.
[[nodiscard]] const rival* best_peer(const std::vector<rival>& rivals);

/// What a pair costs either side.
void add_costs(const rival& of, report& found, std::optional<double> limit = {});

} // namespace bench
