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
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/toxiproxy.hpp"
#include "support/toxiproxy_faults.hpp"

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace colock::testing;
using colock::lease_clock;
using colock::lease_timer;
using std::chrono::milliseconds;

struct settings
{
    std::string url = from_environment("COLOCK_TEST_MONGODB", "");
    std::string fault_command;
    std::uint32_t seed = std::random_device{}();
    int seconds = 300;
    std::uint32_t processes = 4;
    std::uint32_t workers = 8;
    std::uint32_t keys = 3;
    bool early_release = false;

    [[nodiscard]] std::string key(std::uint32_t number) const
    {
        return "storm-" + std::to_string(seed) + '-' + std::to_string(number);
    }
    [[nodiscard]] std::string key_prefix() const { return "storm-" + std::to_string(seed) + '-'; }
};

class random_numbers
{
public:
    explicit random_numbers(std::uint32_t seed) : engine_(seed) {}

    [[nodiscard]] std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
    [[nodiscard]] bool once_in(std::uint32_t times) { return below(times) == 0; }
    [[nodiscard]] milliseconds time_below(milliseconds bound)
    {
        return milliseconds(below(static_cast<std::uint32_t>(bound.count())));
    }
    [[nodiscard]] std::uint32_t seed() { return static_cast<std::uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

// --- the records ----------------------------------------------------------------------------------------------------

/// The period in which a caller could believe to hold a lock, in nanoseconds of lease_clock, which all processes share.
struct hold
{
    std::string key;
    bool shared = false;
    std::uint64_t fence = 0;
    std::int64_t from = 0;
    std::int64_t until = 0;
};

std::ostream& operator<<(std::ostream& out, const hold& held)
{
    return out << held.key << ' ' << held.shared << ' ' << held.fence << ' ' << held.from << ' ' << held.until;
}

std::istream& operator>>(std::istream& in, hold& held)
{
    return in >> held.key >> held.shared >> held.fence >> held.from >> held.until;
}

std::int64_t nanoseconds(lease_clock::time_point at)
{
    return at.time_since_epoch().count();
}

/// Returns a line for each violation among the holds of one key.
std::vector<std::string> check_key(std::vector<hold> holds)
{
    std::ranges::sort(holds, {}, &hold::from);
    std::vector<std::string> violations;
    const auto report = [&](const char* what, const hold& first, const hold& second) {
        std::ostringstream line;
        line << what << ": " << first << " and " << second;
        violations.push_back(line.str());
    };
    // Of the holds so far: those that end last, and those with the greatest fence.
    const hold none;
    const hold* last = &none;
    const hold* last_exclusive = &none;
    const hold* greatest = &none;
    const hold* greatest_exclusive = &none;
    for (const auto& each : holds) {
        const auto& before = each.shared ? *last_exclusive : *last;
        if (each.from < before.until)
            report("two holds at once", before, each);
        const auto& lower = each.shared ? *greatest_exclusive : *greatest;
        if (each.fence <= lower.fence)
            report("fence has not grown", lower, each);
        const auto replace = [&each](const hold*& known, auto member) {
            if (each.*member > known->*member)
                known = &each;
        };
        replace(last, &hold::until);
        replace(greatest, &hold::fence);
        if (!each.shared) {
            replace(last_exclusive, &hold::until);
            replace(greatest_exclusive, &hold::fence);
        }
    }
    return violations;
}

// --- the processes that acquire locks -------------------------------------------------------------------------------

asio::awaitable<void> sleep(lease_clock::duration span)
{
    lease_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::use_awaitable);
}

class client
{
public:
    client(const settings& how, std::uint32_t seed, const std::string& url, const std::filesystem::path& log,
        lease_clock::time_point end)
        : how_(how), draw_(seed), end_(end), log_(log),
          by_(colock::make_adapter(io_.get_executor(), url, tools::built_backends()), {.operation_timeout = 2s})
    {
    }

    void run()
    {
        for (std::uint32_t n = 0; n < how_.workers; ++n)
            asio::co_spawn(io_, work(), [this](std::exception_ptr failure) { on_end(std::move(failure)); });
        io_.run();
        if (failure_)
            std::rethrow_exception(failure_);
        std::string text = "storm: process " + std::to_string(::getpid()) + ": " + std::to_string(holds_) + " holds";
        for (const auto& [what, count] : failures_)
            text += "; " + std::to_string(count) + " x " + what;
        std::cout << text + '\n' << std::flush;
    }

private:
    void count(const colock::error& failed)
    {
        // The message of the code, without its advice.
        const auto text = failed.code().message();
        ++failures_[text.substr(0, text.find_first_of(",;:"))];
    }

    void on_end(std::exception_ptr failure)
    {
        if (failure)
            failure_ = std::move(failure);
        if (--running_ == 0)
            asio::co_spawn(io_, shut_down(), [this](std::exception_ptr problem) {
                if (problem)
                    failure_ = std::move(problem);
            });
    }

    asio::awaitable<void> shut_down()
    {
        const auto report = co_await by_.shutdown(60s);
        if (!report.clean())
            throw std::runtime_error("the shutdown was not clean");
    }

    asio::awaitable<void> work()
    {
        ++running_;
        while (lease_clock::now() < end_) {
            try {
                co_await acquire_at_random();
            } catch (const colock::error& failed) {
                count(failed);
            }
        }
    }

    asio::awaitable<void> acquire_at_random()
    {
        const auto key = how_.key(draw_.below(how_.keys));
        colock::acquire_options options{.ttl = draw_.once_in(4) ? 500ms : 1500ms + draw_.time_below(3s)};
        if (draw_.once_in(8))
            options.ttl = 0ms;
        if (draw_.once_in(3))
            options.mode = colock::lock_mode::shared;
        if (draw_.once_in(2))
            options.renewal = colock::renewal::manual;
        options.retry = draw_.once_in(2) ? colock::retry_policy::forever().total_time(200ms + draw_.time_below(8s))
                                         : colock::retry_policy::fixed(50ms).times(40).jitter(0.3);
        switch (draw_.below(6)) {
        case 0:
            if (auto held = co_await by_.try_acquire(key, options))
                co_await use(std::move(*held));
            break;
        case 1:
        case 2: {
            auto [failed, held] = co_await by_.async_acquire(key, options,
                asio::cancel_after(
                    draw_.time_below(draw_.once_in(2) ? 10ms : 400ms), asio::as_tuple(asio::use_awaitable)));
            if (!failed)
                co_await use(std::move(held));
            break;
        }
        case 3:
            co_await use_group(options);
            break;
        default:
            co_await use(co_await by_.acquire(key, options));
            break;
        }
    }

    asio::awaitable<void> use_group(colock::acquire_options options)
    {
        std::vector<std::string> keys;
        for (std::uint32_t n = 0, first = draw_.below(how_.keys); n < std::min(how_.keys, 2U); ++n)
            keys.push_back(how_.key((first + n) % how_.keys));
        auto group = co_await by_.acquire_all(std::move(keys), std::move(options));
        const auto from = lease_clock::now();
        co_await sleep(draw_.time_below(40ms));
        const auto until = lease_clock::now();
        for (const auto& each : group.locks())
            record(each, from, until);
        if (!draw_.once_in(3))
            std::ignore = co_await group.release();
    }

    asio::awaitable<void> use(colock::lock held)
    {
        const auto from = lease_clock::now();
        co_await sleep(draw_.time_below(draw_.once_in(20) ? 2s : 10ms));
        if (held.held() && held.ttl() > 0ms && draw_.once_in(4)) {
            try {
                co_await held.extend(1s + draw_.time_below(3s));
                co_await sleep(draw_.time_below(100ms));
            } catch (const colock::error& failed) {
                count(failed);
            }
        }
        if (how_.early_release && draw_.once_in(10)) {
            co_await held.release();
            co_await sleep(20ms);
            write({held.key(), held.mode() == colock::lock_mode::shared, held.fence(), nanoseconds(from),
                nanoseconds(lease_clock::now())});
            co_return;
        }
        record(held, from, lease_clock::now());
        if (draw_.once_in(6)) {
            co_await hand_over(std::move(held));
        } else if (draw_.once_in(6)) {
            auto [ignored] = co_await held.async_release(
                asio::cancel_after(draw_.time_below(5ms), asio::as_tuple(asio::use_awaitable)));
            static_cast<void>(ignored);
        } else if (!draw_.once_in(5)) {
            co_await held.release(colock::on_failure::raise);
        }
    }

    asio::awaitable<void> hand_over(colock::lock held)
    {
        const auto ttl = 1s + draw_.time_below(2s);
        auto ticket = co_await held.detach();
        co_await sleep(draw_.time_below(20ms));
        auto next = co_await by_.adopt(std::move(ticket), {.ttl = ttl});
        const auto from = lease_clock::now();
        co_await sleep(draw_.time_below(50ms));
        record(next, from, lease_clock::now());
        co_await next.release();
    }

    void record(const colock::lock& held, lease_clock::time_point from, lease_clock::time_point until)
    {
        // A grant may arrive after the end of its lease. Then the lock was never held.
        until = std::min(until, held.expires_at());
        if (from < until)
            write({held.key(), held.mode() == colock::lock_mode::shared, held.fence(), nanoseconds(from),
                nanoseconds(until)});
    }
    void write(const hold& held)
    {
        ++holds_;
        log_ << held << '\n';
    }

    const settings& how_;
    random_numbers draw_;
    const lease_clock::time_point end_;
    std::ofstream log_;
    asio::io_context io_{1};
    colock::locker by_;
    std::uint32_t running_ = 0;
    std::uint64_t holds_ = 0;
    std::map<std::string, std::uint64_t> failures_;
    std::exception_ptr failure_;
};

// --- the faults -----------------------------------------------------------------------------------------------------

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

// --- the storm ------------------------------------------------------------------------------------------------------

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
                client(how, seed, url, log_of(n), end).run();
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

int main(int count, char** words)
try {
    settings how;
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
    return run(how);
} catch (const std::exception& failed) {
    std::cerr << "storm: error: " << failed.what() << '\n';
    return 2;
}
