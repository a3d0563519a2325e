// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A storm: processes acquire a few keys of one server at random, while their connections fail. Each process records
// when it held which lock. At the end, the program checks the records of all processes:
//
//   - Two holds of a key overlap only if both are shared.
//   - The fence grows with each exclusive hold.
//   - No lock remains on the server, and each key can be acquired.
//
//   scripts/servers.sh run mongodb -- build/debug/test/storm/colock_test_storm --seconds 60

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"
#include "client.hpp"
#include "history.hpp"
#include "settings.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/toxiproxy.hpp"
#include "support/toxiproxy_faults.hpp"

#include <colock/error.hpp>
#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace storm {

namespace {

using namespace colock::testing;

void add_toxic(toxiproxy& link, bool set, std::string_view type, std::string_view stream, std::string_view attributes)
{
    if (set)
        link.add(type, type, stream, attributes);
    else
        link.remove(type);
}

/// Faults in addition to those of the tests.
constexpr std::array more_faults{
    toxiproxy_fault{"late requests",
        [](toxiproxy& link, bool set) {
            add_toxic(link, set, "latency", "upstream", R"({"latency":300,"jitter":300})");
        }},
    toxiproxy_fault{"late replies",
        [](toxiproxy& link, bool set) {
            add_toxic(link, set, "latency", "downstream", R"({"latency":300,"jitter":300})");
        }},
    toxiproxy_fault{"cut inside a request",
        [](toxiproxy& link, bool set) { add_toxic(link, set, "limit_data", "upstream", R"({"bytes":3000})"); }},
    toxiproxy_fault{"cut inside a reply",
        [](toxiproxy& link, bool set) { add_toxic(link, set, "limit_data", "downstream", R"({"bytes":1500})"); }},
};

/// Injects faults into the connections of random processes until `end`.
void inject_faults(const settings& how, random_numbers draw, std::vector<std::unique_ptr<toxiproxy>>& links,
    lease_clock::time_point end)
{
    std::vector<toxiproxy_fault> faults(toxiproxy_faults.begin(), toxiproxy_faults.end());
    faults.insert(faults.end(), more_faults.begin(), more_faults.end());
    std::map<std::string, int> counts;
    while (lease_clock::now() < end) {
        std::this_thread::sleep_for(draw.time_below(1500ms));
        if (!how.fault_command.empty() && draw.once_in(4)) {
            if (std::system(how.fault_command.c_str()) != 0)
                throw std::runtime_error("the command of --fault-command has failed");
            ++counts["the command"];
            continue;
        }
        auto& link = *links[draw.below(static_cast<std::uint32_t>(links.size()))];
        const auto& fault = faults[draw.below(static_cast<std::uint32_t>(faults.size()))];
        fault.set(link, true);
        std::this_thread::sleep_for(draw.time_below(draw.once_in(3) ? 4s : 300ms));
        fault.set(link, false);
        ++counts[fault.name];
    }
    std::cout << "storm: faults:";
    for (const auto& [name, count] : counts)
        std::cout << ' ' << name << ' ' << count << ';';
    std::cout << std::endl;
}

/// Position of the server's port in its URL.
std::pair<std::size_t, std::size_t> find_port(const std::string& url)
{
    constexpr std::string_view host = "127.0.0.1:";
    const auto begin = url.find(host);
    if (begin == url.npos)
        throw std::runtime_error(
            "the URL '" + url +
            "' does not contain '127.0.0.1:' and a port, which Toxiproxy needs; give another --url");
    const auto first = begin + host.size();
    return {first, std::min(url.find_first_not_of("0123456789", first), url.size()) - first};
}

template <class T>
T run_alone(asio::io_context& io, asio::awaitable<T> coroutine)
{
    std::optional<T> result;
    std::exception_ptr failure;
    asio::co_spawn(io, std::move(coroutine), [&](std::exception_ptr problem, T value) {
        failure = std::move(problem);
        result.emplace(std::move(value));
    });
    io.restart();
    io.run();
    if (failure)
        std::rethrow_exception(failure);
    return std::move(*result);
}

/// Returns a line for each key that is still held on the server when all leases have ended, and for each key that
/// cannot be acquired.
std::vector<std::string> check_server(const settings& how)
{
    asio::io_context io;
    const colock::locker by(colock::make_adapter(io.get_executor(), how.url, tools::built_backends()));
    return run_alone(io, [](const settings& how, colock::locker by) -> asio::awaitable<std::vector<std::string>> {
        std::vector<std::string> violations;
        std::vector<colock::lock_status> left;
        for (const auto limit = lease_clock::now() + 30s; lease_clock::now() < limit; co_await sleep(100ms)) {
            left = co_await by.list({.key_prefix = how.key_prefix()});
            if (left.empty())
                break;
        }
        for (const auto& each : left)
            violations.push_back("still held: " + each.key);
        for (std::uint32_t n = 0; n < how.keys; ++n) {
            if (!co_await by.try_acquire(how.key(n)))
                violations.push_back("cannot be acquired: " + how.key(n));
        }
        std::ignore = co_await by.shutdown(10s);
        co_return violations;
    }(how, by));
}

int run(const settings& how)
{
    std::cout << "storm: --seed " << how.seed << " --seconds " << how.seconds << " --url " << how.url << std::endl;
    const auto [port_begin, port_size] = find_port(how.url);
    std::uint16_t port = 0;
    std::from_chars(how.url.data() + port_begin, how.url.data() + port_begin + port_size, port);

    random_numbers draw(how.seed);
    const temporary_folder folder;
    std::vector<std::unique_ptr<toxiproxy>> links;
    for (std::uint32_t n = 0; n < how.processes; ++n)
        links.push_back(std::make_unique<toxiproxy>(port));
    const auto end = lease_clock::now() + std::chrono::seconds(how.seconds);
    const auto log_of = [&](std::uint32_t process) { return folder / std::to_string(process); };

    std::vector<pid_t> children;
    for (std::uint32_t n = 0; n < how.processes; ++n) {
        auto url = how.url;
        url.replace(port_begin, port_size, std::to_string(links[n]->port()));
        children.push_back(in_child([&, seed = draw.seed()] {
            // A process that does not end by itself is ended by a signal, and reported.
            ::alarm(static_cast<unsigned>(how.seconds) + 120);
            try {
                run_client(how, seed, url, log_of(n), end);
            } catch (const std::exception& failed) {
                std::cerr << "storm: process " << ::getpid() << ": " << failed.what() << std::endl;
                throw;
            }
        }));
    }
    inject_faults(how, random_numbers(draw.seed()), links, end);

    std::vector<std::string> violations;
    for (const auto each : children) {
        if (const int status = wait_for(each); status != 0)
            violations.push_back(
                "process " + std::to_string(each) + " has failed with the status " + std::to_string(status));
    }
    std::map<std::string, std::vector<hold>> holds;
    for (std::uint32_t n = 0; n < how.processes; ++n) {
        std::ifstream log(log_of(n));
        for (hold each; log >> each;)
            holds[each.key].push_back(each);
    }
    for (std::uint32_t n = 0; n < how.keys; ++n) {
        auto& all = holds[how.key(n)];
        std::cout << "storm: " << how.key(n) << ": " << all.size() << " holds\n";
        if (all.empty())
            violations.push_back("never held: " + how.key(n));
        std::ranges::move(check_key(std::move(all)), std::back_inserter(violations));
    }
    try {
        std::ranges::move(check_server(how), std::back_inserter(violations));
    } catch (const colock::error& failed) {
        violations.push_back(std::string("the server cannot be checked: ") + failed.what());
    }

    constexpr std::size_t max_printed = 20;
    for (std::size_t n = 0; n < std::min(violations.size(), max_printed); ++n)
        std::cout << "storm: violation: " << violations[n] << '\n';
    std::cout << "storm: " << violations.size() << " violations" << std::endl;
    return violations.empty() ? 0 : 1;
}

} // namespace

} // namespace storm

int main(int count, char** words)
try {
    storm::settings how;
    tools::arguments known("Processes acquire a few keys at random while their connections fail. No two holds of a key "
                           "may overlap, and fences have to grow. Exits with 1 after a violation.");
    known.value("url", how.url, "URL", "the server, at 127.0.0.1 (default: $COLOCK_TEST_MONGODB)")
        .value("seconds", how.seconds, "N", "duration (default: 300)", 1, 24 * 3600)
        .value("seed", how.seed, "N", "seed of all random choices (default: random)", 0,
            std::numeric_limits<std::uint32_t>::max())
        .value("processes", how.processes, "N", "number of processes (default: 4)", 1, 64)
        .value("workers", how.workers, "N", "number of coroutines of each process (default: 8)", 1, 1000)
        .value("keys", how.keys, "N", "number of keys (default: 3)", 1, 1000)
        .value("fault-command", how.fault_command, "COMMAND", "a shell command that causes another fault")
        .flag("early-release", how.early_release, "some holders release too early, which has to be reported");
    if (const auto status = known.parse(count, words))
        return *status;
    if (how.url.empty()) {
        std::cerr << "storm: error: no server; set --url or COLOCK_TEST_MONGODB (see scripts/servers.sh)\n";
        return 77;
    }
    return storm::run(how);
} catch (const std::exception& failed) {
    std::cerr << "storm: error: " << failed.what() << '\n';
    return 2;
}
