// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Processes call all functions of a locker at random, while servers, links and processes fail. Each process writes a
// history of its calls. scripts/prove.sh runs this program, and checks the histories with test/prove/check.py.

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"
#include "client.hpp"
#include "history.hpp"
#include "sabotage.hpp"
#include "servers.hpp"
#include "settings.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"
#include "support/toxiproxy.hpp"
#include "support/toxiproxy_faults.hpp"

#include <colock/error.hpp>
#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace prove {

namespace {

namespace asio = boost::asio;
using namespace colock::testing;

void set_toxic(toxiproxy& link, bool set, std::string_view type, std::string_view stream, std::string_view attributes)
{
    if (set)
        link.add(type, type, stream, attributes);
    else
        link.remove(type);
}

/// Faults of links in addition to those of the tests. They suspend nothing.
constexpr std::array more_link_faults{
    toxiproxy_fault{"late requests",
        [](toxiproxy& link, bool set) {
            set_toxic(link, set, "latency", "upstream", R"({"latency":300,"jitter":300})");
        }},
    toxiproxy_fault{"late replies",
        [](toxiproxy& link, bool set) {
            set_toxic(link, set, "latency", "downstream", R"({"latency":300,"jitter":300})");
        }},
    toxiproxy_fault{"cut inside a request",
        [](toxiproxy& link, bool set) { set_toxic(link, set, "limit_data", "upstream", R"({"bytes":3000})"); }},
    toxiproxy_fault{"cut inside a reply",
        [](toxiproxy& link, bool set) { set_toxic(link, set, "limit_data", "downstream", R"({"bytes":1500})"); }},
    toxiproxy_fault{"requests held",
        [](toxiproxy& link, bool set) { set_toxic(link, set, "timeout", "upstream", R"({"timeout":0})"); }},
    toxiproxy_fault{"replies held",
        [](toxiproxy& link, bool set) { set_toxic(link, set, "timeout", "downstream", R"({"timeout":0})"); }},
    toxiproxy_fault{"reset",
        [](toxiproxy& link, bool set) { set_toxic(link, set, "reset_peer", "downstream", R"({"timeout":100})"); }},
    toxiproxy_fault{
        "slow", [](toxiproxy& link, bool set) { set_toxic(link, set, "bandwidth", "downstream", R"({"rate":4})"); }},
};

/// One run: the servers, the processes, and the faults.
class run
{
public:
    explicit run(settings& how)
        : how_(how), draw_(how.seed), servers_(start_servers(how.backend, how.sabotage)),
          history_(std::filesystem::path(how.folder) / "run"),
          end_(lease_clock::now() + std::chrono::seconds(how.seconds))
    {
        auto faults = servers_->faults(draw_);
        how.lasting_locks = draw_.once_in(2) && !std::ranges::all_of(faults, &server_fault::keeps_locks);
        for (auto& each : faults) {
            if (!how.lasting_locks || !each.keeps_locks)
                server_faults_.push_back(std::move(each));
        }
        link_faults_.assign(toxiproxy_faults.begin(), toxiproxy_faults.end());
        link_faults_.insert(link_faults_.end(), more_link_faults.begin(), more_link_faults.end());
        std::cout << "prove: the locks without ttl " << (how.lasting_locks ? "are used" : "are not used") << std::endl;
        for (std::uint32_t n = 0; n < how.processes; ++n)
            places_.emplace_back(*servers_);
    }

    /// Returns whether each process has ended well, and the servers could be examined.
    bool operator()()
    {
        const auto traits = colock::make_adapter(
            asio::io_context().get_executor(), servers_->url(servers_->ports()), tools::built_backends())
                                ->traits();
        history_.write(entry()
                .add("backend", how_.backend)
                .add("fence", traits.capabilities.fence)
                .add("fifo", traits.capabilities.fifo)
                .add("keys", all_keys())
                .add("semaphore", how_.key(semaphore_key))
                .add("max_holders", max_holders)
                .add("operation_timeout", operation_timeout.count()));
        // A server that is killed while it creates its first files may not start again, so it has to answer first.
        with_locker([this](colock::locker locker) -> asio::awaitable<void> {
            auto held = co_await locker.acquire(how_.key(0));
            co_await held.release();
            std::ignore = co_await locker.shutdown(10s);
        });
        for (auto& each : places_)
            start_client(each);
        while (lease_clock::now() < end_) {
            // Some periods are so long that waiters are served without any fault.
            std::this_thread::sleep_for(draw_.time_below(draw_.once_in(10) ? 8s : 1500ms));
            cause_fault();
        }
        history_.write(entry().add("quiet", true));
        bool is_good = true;
        for (auto& each : places_)
            is_good &= end_client(each);
        return check_servers() && is_good;
    }

private:
    /// A process, and its links to the servers. A process that was killed is replaced by another one.
    struct place
    {
        explicit place(const servers& all)
        {
            for (const auto port : all.ports())
                links.push_back(std::make_unique<toxiproxy>(port));
        }

        std::vector<std::unique_ptr<toxiproxy>> links;
        client_settings client;
        pid_t id = -1;
    };

    [[nodiscard]] std::vector<std::string> all_keys() const
    {
        std::vector<std::string> keys;
        for (std::uint32_t n = 0; n < how_.keys; ++n)
            keys.push_back(how_.key(n));
        return keys;
    }

    /// The processes in the second half may be killed, so they hold no locks without ttl.
    [[nodiscard]] bool may_be_killed(const place& each) const { return &each >= &places_[(places_.size() + 1) / 2]; }

    void start_client(place& at)
    {
        std::vector<std::uint16_t> ports;
        for (const auto& link : at.links)
            ports.push_back(link->port());
        const auto process = ++started_;
        at.client = {.process = process,
            .seed = draw_.seed(),
            .url = servers_->url_of_process(ports, process),
            .history = std::filesystem::path(how_.folder) / std::to_string(process),
            .end = end_,
            .lasting_locks = how_.lasting_locks && !may_be_killed(at)};
        at.id = in_child([&] {
            // The process must not outlive this one, which may fail.
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            // A process that does not end by itself is ended by a signal, and reported.
            ::alarm(static_cast<unsigned>(how_.seconds) + 120);
            try {
                run_client(how_, at.client, *resources_.operator->());
            } catch (const std::exception& failed) {
                std::cerr << "prove: process " << at.client.process << ": " << failed.what() << std::endl;
                throw;
            }
        });
    }
    bool end_client(place& at)
    {
        const int status = wait_for(at.id);
        history_.write(entry().add("ended", at.client.process).add("status", status));
        return status == 0;
    }

    void write_fault(
        std::string_view name, std::string_view target, suspension suspended, lease_clock::time_point began)
    {
        history_.write(
            entry().add("fault", name).add("target", target).add("suspends", to_string(suspended)).add("began", began));
    }

    void cause_fault()
    {
        const auto span = draw_.time_below(draw_.once_in(3) ? 4s : 300ms);
        auto& at = places_[draw_.below(static_cast<std::uint32_t>(places_.size()))];
        const auto kind = draw_.below(10);
        const auto process = "process " + std::to_string(at.client.process);
        const auto began = lease_clock::now();
        if (kind < 3) {
            auto& fault = server_faults_[draw_.below(static_cast<std::uint32_t>(server_faults_.size()))];
            fault.begin();
            std::this_thread::sleep_for(span);
            fault.end();
            write_fault(fault.name, "server", fault.suspended, began);
            if (fault.repair) {
                const auto ended = lease_clock::now();
                fault.repair();
                write_fault(std::string(fault.name) + ", repair", "server", suspension::none, ended);
            }
        } else if (kind == 3) {
            ::kill(at.id, SIGSTOP);
            std::this_thread::sleep_for(span);
            ::kill(at.id, SIGCONT);
            write_fault("process stopped", process, suspension::none, began);
        } else if (kind == 4 && may_be_killed(at)) {
            // The process may be inside a call, so the time is taken when nothing of it runs any more.
            ::kill(at.id, SIGKILL);
            std::ignore = wait_for(at.id);
            history_.write(entry().add("killed", at.client.process));
            std::this_thread::sleep_for(span);
            start_client(at);
            write_fault("process killed", process, suspension::none, began);
        } else {
            const auto& fault = link_faults_[draw_.below(static_cast<std::uint32_t>(link_faults_.size()))];
            // Sometimes all links fail at the same time.
            const bool is_everywhere = draw_.once_in(6);
            const auto set = [&](bool value) {
                for (auto& each : places_) {
                    if (is_everywhere || &each == &at)
                        for (const auto& link : each.links)
                            fault.set(*link, value);
                }
            };
            set(true);
            std::this_thread::sleep_for(span);
            set(false);
            write_fault(fault.name, is_everywhere ? "all links" : process, suspension::none, began);
        }
    }

    /// Runs a coroutine with a locker of its own.
    template <class Use>
    void with_locker(Use use)
    {
        asio::io_context io;
        const colock::locker locker(
            colock::make_adapter(io.get_executor(), servers_->url(servers_->ports()), tools::built_backends()));
        std::exception_ptr failure;
        asio::co_spawn(io, use(locker), [&](std::exception_ptr problem) { failure = std::move(problem); });
        io.run();
        if (failure)
            std::rethrow_exception(failure);
    }

    /// Waits until all leases have ended, and writes what remains on the servers, and which keys cannot be acquired.
    bool check_servers()
    {
        // Sessions end, and leases expire, before this time.
        const auto limit = lease_clock::now() + 20s;
        try {
            with_locker([&](const colock::locker& locker) { return examine(locker, limit); });
        } catch (const std::exception& failed) {
            std::cout << "prove: the servers cannot be examined: " << failed.what() << std::endl;
            return false;
        }
        auto left = servers_->residue();
        while (!left.empty() && lease_clock::now() < limit) {
            std::this_thread::sleep_for(100ms);
            left = servers_->residue();
        }
        history_.write(entry().add("residue", left));
        return true;
    }
    asio::awaitable<void> examine(colock::locker locker, lease_clock::time_point limit)
    {
        std::vector<std::string> left;
        while (lease_clock::now() < limit) {
            left.clear();
            for (const auto& each : co_await locker.list({.key_prefix = how_.key_prefix()}))
                left.push_back("lock of " + each.key + " by " + each.owner);
            if (left.empty())
                break;
            colock::lease_timer timer(co_await asio::this_coro::executor, 100ms);
            co_await timer.async_wait(asio::use_awaitable);
        }
        for (const auto& key : all_keys()) {
            if (!co_await locker.try_acquire(key, limit - lease_clock::now()))
                left.push_back(key + " cannot be acquired");
        }
        history_.write(entry().add("residue", left));
        std::ignore = co_await locker.shutdown(10s);
    }

    settings& how_;
    random_numbers draw_;
    const std::unique_ptr<servers> servers_;
    history history_;
    const lease_clock::time_point end_;
    std::vector<server_fault> server_faults_;
    std::vector<toxiproxy_fault> link_faults_;
    in_shared_memory<fenced_resources> resources_;
    std::vector<place> places_;
    std::uint32_t started_ = 0;
};

} // namespace

} // namespace prove

int main(int count, char** words)
try {
    prove::settings how;
    tools::arguments known("Processes call all functions of a locker at random, while servers, links and processes "
                           "fail. Each process writes a history into a folder. Exits with 1 if a process has failed.");
    known
        .value("backend", how.backend, "NAME",
            "redis, redis-cluster, sentinel, quorum, zookeeper, mongodb, mongodb_native or ferretdb (default: redis)")
        .value("folder", how.folder, "FOLDER", "an empty folder for the histories")
        .value("seconds", how.seconds, "N", "duration (default: 60)", 1, 24 * 3600)
        .value("seed", how.seed, "N", "seed of all random choices (default: random)", 0,
            std::numeric_limits<std::uint32_t>::max())
        .value("processes", how.processes, "N", "number of processes (default: 4)", 1, 64)
        .value("workers", how.workers, "N", "number of coroutines of each process (default: 16)", 1, 1000)
        .value("keys", how.keys, "N", "number of keys (default: 24)", 4, prove::max_keys)
        .value("sabotage", how.sabotage, "NAME",
            "a fault of the lock service, which the checker has to find: see docs/testing.md");
    if (const auto status = known.parse(count, words))
        return *status;
    if (!std::filesystem::is_directory(how.folder) || (!how.sabotage.empty() && !prove::is_sabotage(how.sabotage))) {
        std::cerr << "prove: error: --folder names no folder, or the sabotage is unknown; see --help\n";
        return 2;
    }
    return prove::run(how)() ? 0 : 1;
} catch (const std::exception& failed) {
    std::cerr << "prove: error: " << failed.what() << '\n';
    return 2;
}
