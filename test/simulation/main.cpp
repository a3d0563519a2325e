// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// Searches for violations of the promises of the library by simulated runs; see docs/testing.md.

#include "simulation/plan.hpp"

#include "support/in_shared_memory.hpp"
#include "util/simulation_marks.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <string_view>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace colock::simulation;

namespace {

constexpr const char* defects[] = {"break_beside_grant", "second_cancellation_lost", "group_starves",
    "throwing_callback", "requests_wait_for_observer", "lease_from_answer", "late_release"};
/// CPU seconds in which a defect has to be found.
constexpr double defect_limit = 300;

constexpr const char* usage = R"(usage: colock_test_simulation [options]
  --seed N        first seed; default: a random number, which is printed, and 1 with a defect
  --runs N        number of runs; default: as many as fit into the time
  --seconds N     CPU time; default: 60
  --all           do not end at the first violation, and do not shrink
  --show          print the timeline of the run of the seed
  --hashes        print the hash of the history of each run
  --defect NAME   put back a defect; exits with 1 if it is found within 5 CPU minutes
  --defects       put back each defect; exits with 0 if each is found within 5 CPU minutes
)";

/// The results of child processes.
struct report
{
    /// The run in progress.
    std::uint64_t seed = 0;
    std::uint64_t runs = 0, steps = 0, grants = 0, handlers = 0;
    double virtual_hours = 0, cpu_seconds = 0;
    char violation[400] = {};
    bool is_reached[colock::detail::max_rare_paths] = {};
};

using shared_report = colock::testing::in_shared_memory<report>;

double cpu_seconds()
{
    ::timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// Ends the process by a signal after 20 further CPU seconds, which only a run that never ends needs.
void limit_cpu_time()
{
    const ::rlimit limit{static_cast<::rlim_t>(cpu_seconds()) + 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_CPU, &limit);
}

/// Executes a plan and adds its numbers. Returns whether there was a violation.
bool execute_and_report(const plan& planned, const shared_report& sums)
{
    sums->seed = planned.seed;
    const double start = cpu_seconds();
    limit_cpu_time();
    const auto result = execute(planned);
    ++sums->runs;
    sums->steps += planned.steps.size();
    sums->grants += result.grants;
    sums->handlers += result.handlers;
    sums->virtual_hours += std::chrono::duration<double, std::ratio<3600>>(result.virtual_time).count();
    sums->cpu_seconds += cpu_seconds() - start;
    for (const auto* each = colock::detail::rare_paths; each; each = each->next)
        sums->is_reached[each->number] |= each->is_reached;
    result.violation.copy(sums->violation, sizeof(report::violation) - 1);
    return !result.violation.empty();
}

/// Calls a function in a child process, so that a crash is a finding. Returns the violation, or how the process ended.
std::string run_in_child(const shared_report& sums, const std::function<void()>& function)
{
    std::ranges::fill(sums->violation, '\0');
    const ::pid_t child = ::fork();
    if (child == 0) {
        limit_cpu_time();
        function();
        std::_Exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return std::string("the process was ended by signal ") + ::strsignal(WTERMSIG(status));
    return sums->violation;
}

/// Returns the violation of a plan without its numbers and keys, so that two runs can be compared.
std::string kind_of_violation(const plan& planned)
{
    const shared_report ignored;
    auto violation = run_in_child(ignored, [&] { execute_and_report(planned, ignored); });
    return std::regex_replace(violation, std::regex("[0-9]+|\\b[a-d]\\b"), "");
}

/// Removes steps from a plan for as long as its run still fails, and prints the timeline of the result.
void shrink(std::uint64_t seed)
{
    auto smallest = make_plan(seed);
    const auto before = smallest.steps.size();
    const auto kind = kind_of_violation(smallest);
    unsigned attempts = 0;
    for (auto size = std::max<std::size_t>(before / 2, 1); attempts < 600;) {
        bool has_shrunk = false;
        for (std::size_t from = 0; from < smallest.steps.size() && attempts < 600; ++attempts) {
            auto smaller = smallest;
            const auto first = smaller.steps.begin() + static_cast<std::ptrdiff_t>(from);
            const auto count = std::min(size, smaller.steps.size() - from);
            smaller.steps.erase(first, first + static_cast<std::ptrdiff_t>(count));
            if (kind_of_violation(smaller) != kind) {
                from += size;
            } else {
                smallest = std::move(smaller);
                has_shrunk = true;
            }
        }
        if (size == 1 && !has_shrunk)
            break;
        size = std::max<std::size_t>(size / 2, 1);
    }
    std::cout << smallest.steps.size() << " of " << before << " steps are enough:\n";
    for (const auto& each : smallest.steps)
        std::cout << "  step " << name_of(each.what) << " at " << std::chrono::duration<double>(each.at).count()
                  << " s\n";
    std::cout << std::flush;
    // In a child process, because the run may crash.
    const shared_report ignored;
    run_in_child(ignored, [&] { static_cast<void>(execute(smallest, &std::cout)); });
}

struct search_options
{
    std::uint64_t first_seed = 0;
    /// 0: no limit but the time.
    std::uint64_t runs = 0;
    double cpu_seconds = 60;
    bool finds_all = false;
    bool shrinks = true;
};

/// Executes the runs of consecutive seeds. Returns whether there was a violation.
bool search(const search_options& options)
{
    const shared_report sums;
    sums->seed = options.first_seed - 1;
    std::cout << "first seed " << options.first_seed << std::endl;
    bool has_found = false;
    for (;;) {
        const auto violation = run_in_child(sums, [&] {
            while (options.runs > 0 ? sums->seed + 1 < options.first_seed + options.runs
                                    : sums->cpu_seconds < options.cpu_seconds)
            {
                if (execute_and_report(make_plan(sums->seed + 1), sums))
                    break;
            }
        });
        if (violation.empty())
            break;
        has_found = true;
        std::cout << "seed " << sums->seed << ": " << violation << std::endl;
        if (options.finds_all)
            continue;
        if (options.shrinks)
            shrink(sums->seed);
        break;
    }
    std::cout << sums->runs << " runs, " << sums->steps << " steps, " << sums->grants << " grants, " << sums->handlers
              << " handlers, " << sums->virtual_hours << " virtual hours, " << sums->cpu_seconds << " CPU seconds\n";
    for (const auto* each = colock::detail::rare_paths; each && !has_found; each = each->next) {
        if (!sums->is_reached[each->number])
            std::cout << "never reached: " << each->name << '\n';
    }
    return has_found;
}

/// Puts each defect back. Returns whether each was found.
bool find_defects(search_options options)
{
    bool has_found_all = true;
    options.cpu_seconds = defect_limit;
    options.shrinks = false;
    options.first_seed = 1;
    for (const char* const each : defects) {
        colock::detail::active_defect = each;
        std::cout << each << ": ";
        has_found_all &= search(options);
    }
    return has_found_all;
}

} // namespace

int main(int count, char** arguments)
{
    search_options options;
    std::string_view mode;
    for (int n = 1; n < count; ++n) {
        const std::string_view name = arguments[n];
        const char* const value = n + 1 < count ? arguments[n + 1] : "";
        if (name == "--all") {
            options.finds_all = true;
        } else if (name == "--show" || name == "--hashes" || name == "--defects") {
            mode = name;
        } else if (name == "--seed" || name == "--runs") {
            (name == "--seed" ? options.first_seed : options.runs) = std::strtoull(value, nullptr, 10);
            ++n;
        } else if (name == "--seconds") {
            options.cpu_seconds = std::atof(value);
            ++n;
        } else if (name == "--defect" && std::ranges::find(defects, std::string_view(value)) != std::end(defects)) {
            colock::detail::active_defect = value;
            options.cpu_seconds = defect_limit;
            ++n;
        } else {
            std::cerr << usage;
            return name == "--help" ? 0 : 2;
        }
    }
    if (options.first_seed == 0)
        options.first_seed = colock::detail::active_defect.empty() ? std::random_device{}() : 1;
    if (mode == "--show")
        return execute(make_plan(options.first_seed), &std::cout).violation.empty() ? 0 : 1;
    if (mode == "--defects")
        return find_defects(options) ? 0 : 1;
    if (mode != "--hashes")
        return search(options) ? 1 : 0;
    for (std::uint64_t n = 0; n < options.runs; ++n)
        std::cout << options.first_seed + n << ' ' << execute(make_plan(options.first_seed + n)).hash << '\n';
    return 0;
}
