// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Several processes add to one counter, and some of them are killed. With the lock, no update is lost, and the lock of
// a killed holder is free after its TTL. --unlocked shows the lost updates. Then a process is stopped for longer than
// its lease and continued: its write is refused.

#include "counter.hpp"
#include "late_writer.hpp"
#include "processes.hpp"
#include "report.hpp"
#include "worker.hpp"

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>

using namespace std::chrono_literals;

namespace {

struct settings
{
    std::string backend = "redis://127.0.0.1:6379";
    int workers = 4;
    int updates = 100;
    int kills = 3;
    bool unlocked = false;
};

/// Runs a coroutine in this process, with its own locker.
template <class Work>
void with_locker(const std::string& backend, Work work)
{
    asio::io_context io{1};
    const colock::locker locker(colock::make_adapter(io.get_executor(), backend, tools::built_backends()), {.ttl = 5s});
    asio::co_spawn(io, work(locker), [&io](std::exception_ptr failure) {
        io.stop();
        if (failure)
            std::rethrow_exception(failure);
    });
    io.run();
}

/// Returns false if an update was lost.
bool count_together(const settings& options, const std::filesystem::path& folder)
{
    const counter total(folder / "counter");
    const event_pipe reports;
    const auto start_worker = [&] {
        return start_process([&] {
            const worker one(total, reports);
            with_locker(options.backend, [&](colock::locker locker) {
                return options.unlocked ? one.add_unlocked(options.updates) : one.add_locked(locker, options.updates);
            });
            reports.send(event::finished);
        });
    };
    std::set<pid_t> workers;
    for (int i = 0; i < options.workers; ++i)
        workers.insert(start_worker());

    long added = 0;
    int kills = 0;
    auto last = std::chrono::steady_clock::now();
    std::chrono::milliseconds longest{};
    while (!workers.empty()) {
        const auto [from, kind] = reports.receive();
        if (kind == event::added) {
            ++added;
            const auto now = std::chrono::steady_clock::now();
            longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(now - last));
            last = now;
        } else if (kind == event::finished) {
            workers.erase(from);
            if (!wait_for(from))
                return false;
        } else if (kills < options.kills && added >= (kills + 1L) * options.updates / 2 && workers.contains(from)) {
            // The process is probably between reading and writing, and holds the lock.
            ::kill(from, SIGKILL);
            wait_for(from);
            ++kills;
            workers.erase(from);
            workers.insert(start_worker());
        }
    }

    // A killed process may have written without reporting it.
    const long lost = std::max(0L, added - total.read());
    std::cout << "  killed   " << kills << ", longest pause " << longest.count() << " ms\n  added    " << added
              << "\n  counter  " << total.read() << "\n  lost     " << lost << '\n';
    return options.unlocked || (lost == 0 && total.read() <= added + kills);
}

/// Returns false if a late write was accepted.
bool write_reports(const std::string& backend, const std::filesystem::path& folder)
{
    if (asio::io_context io;
        !colock::make_adapter(io.get_executor(), backend, tools::built_backends())->traits().capabilities.fence)
    {
        std::cout << "this backend has no fences: a late write could not be detected\n";
        return true;
    }
    const report paper(folder / "report");
    const pid_t first = start_process(
        [&] { with_locker(backend, [&](colock::locker locker) { return write_late(std::move(locker), paper); }); });
    if (!wait_for(first))
        return false;
    // The first writer is stopped now.
    with_locker(backend, [&](colock::locker locker) { return write_next(std::move(locker), paper); });
    ::kill(first, SIGCONT);
    return wait_for(first) && paper.text() == "second writer";
}

} // namespace

int main(int count, char** words)
try {
    settings options;
    if (const auto early = tools::arguments(
            "shared_counter: several processes share a counter while some of them are killed or stopped")
            .value("backend", options.backend, "URL", "URL of the lock service; default: redis://127.0.0.1:6379")
            .value("workers", options.workers, "N", "number of processes; default: 4", 1, 100)
            .value("updates", options.updates, "N", "updates of each process; default: 100", 1, 1'000'000)
            .value("kills", options.kills, "N", "number of processes to kill; default: 3", 0, 1000)
            .flag("unlocked", options.unlocked, "count without the lock, to show lost updates")
            .parse(count, words))
        return *early;
    if (options.backend.starts_with("memory")) {
        std::cerr << "error: locks of memory: work only within one process\n";
        return 2;
    }

    const auto folder = std::filesystem::temp_directory_path() / ("shared_counter." + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::cout << "shared counter: " << options.workers << " processes, " << options.updates << " updates each, "
              << (options.unlocked ? "no lock" : "one lock") << '\n';
    bool kept = count_together(options, folder);
    if (!options.unlocked)
        kept = write_reports(options.backend, folder) && kept;
    std::filesystem::remove_all(folder);
    return kept ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 2;
}
