// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "listing.hpp"

#include "../tools/built_backends.hpp"
#include "allocations.hpp"
#include "longest_handler.hpp"
#include "redis_connection.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

/// A claim whose holder neither extends nor releases it.
class unattended_claim final : public colock::claim
{
public:
    using claim::claim;
    void lost(colock::lost_reason) noexcept override {}
};

struct stored_locks
{
    asio::io_context io{1};
    std::shared_ptr<colock::adapter> backend;
    colock::locker locker;
    std::vector<colock::claim_ptr> claims{};

    explicit stored_locks(const std::string& url)
        : backend(colock::make_adapter(io.get_executor(), url, tools::built_backends())),
          locker(backend, {.operation_timeout = 60s})
    {
    }

    void acquire(std::size_t count, const std::string& prefix, colock::lock_mode mode, std::chrono::milliseconds ttl)
    {
        const auto first = claims.size();
        for (std::size_t i = 0; i < count; ++i)
            claims.push_back(new unattended_claim({.key = prefix + std::to_string(i), .mode = mode, .ttl = ttl}));
        for_each_from(first, [this](const colock::claim_ptr& each) -> asio::awaitable<void> {
            each->set_operation_start(colock::lease_clock::now());
            const auto outcome = co_await backend->create(each);
            expect(outcome.status == colock::create_status::granted, "a lock was not granted");
        });
    }
    void release_all()
    {
        for_each_from(0, [this](const colock::claim_ptr& each) -> asio::awaitable<void> {
            co_await backend->release(each, colock::release_guarantee::released);
        });
        claims.clear();
    }

    /// Runs `work` for the claims, up to 256 at a time. An exception ends the program.
    template <class Work>
    void for_each_from(std::size_t first, Work work)
    {
        constexpr std::size_t workers = 256;
        std::size_t next = first, running = 0;
        const auto run = [&]() -> asio::awaitable<void> {
            while (next < claims.size()) {
                const auto each = claims[next++];
                co_await work(each);
            }
            --running;
        };
        for (; running < workers; ++running)
            asio::co_spawn(io, run(), rethrow);
        while (running > 0) {
            io.restart();
            io.run_one();
        }
    }
    template <class Answer>
    Answer run_and_measure(asio::awaitable<Answer> operation, longest_time& longest)
    {
        std::optional<Answer> result;
        asio::co_spawn(
            io,
            [](asio::awaitable<Answer> work, std::optional<Answer>& answer) -> asio::awaitable<void> {
                answer.emplace(co_await std::move(work));
            }(std::move(operation), result),
            rethrow);
        const auto took = longest_handler(io, [&] { return !result; });
        longest.cpu = std::max(longest.cpu, took.cpu);
        longest.wall = std::max(longest.wall, took.wall);
        return std::move(*result);
    }

    static constexpr auto rethrow = [](const std::exception_ptr& failure) {
        if (failure)
            std::rethrow_exception(failure);
    };
};

void measure_pages(stored_locks& stored, std::size_t size, const std::string& name, report& results)
{
    stored.acquire(size, "l:", colock::lock_mode::exclusive, 1h);
    longest_time longest;
    std::size_t listed = 0, pages = 0, largest = 0;
    std::ptrdiff_t grown = 0;
    const auto began = std::chrono::steady_clock::now();
    {
        const byte_count counted;
        colock::lock_page page;
        do {
            page = stored.run_and_measure(stored.locker.list_page({}, std::move(page.next)), longest);
            listed += page.locks.size();
            largest = std::max(largest, page.locks.size());
            ++pages;
            grown = std::max(grown, counted.grown());
        } while (!page.next.empty());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    expect(listed == size, "not every lock was listed once");
    add(results, name + " listed, longest handler", longest);
    results.add({name + " listed, pages", static_cast<double>(pages), ""});
    results.add({name + " listed, locks of the largest page", static_cast<double>(largest), ""});
    results.add({name + " listed, heap at most", static_cast<double>(grown) / 1024, "KiB", 4096.0});
    results.add({name + " listed in", took.count(), "s"});

    longest = {};
    const auto all = stored.run_and_measure(stored.locker.list({}, colock::list_order::newest_first), longest);
    add(results, name + " in one list, newest first, longest handler", longest);
    stored.release_all();
}

void measure_purge(stored_locks& stored, std::size_t size, const std::string& name, report& results)
{
    if (!stored.backend->traits().capabilities.expires)
        return;
    // Redis deletes a key when all its holders have expired. A reader with a longer TTL keeps the key.
    const bool has_reader = stored.backend->traits().name == "redis";
    const auto mode = has_reader ? colock::lock_mode::shared : colock::lock_mode::exclusive;
    stored.acquire(size, "p:", mode, has_reader ? 10s : 1s);
    stored.claims.clear();
    if (has_reader)
        stored.acquire(size, "p:", mode, 1h);
    const auto expired = std::chrono::steady_clock::now() + (has_reader ? 11s : 2s);
    static_cast<void>(longest_handler(stored.io, [&] { return std::chrono::steady_clock::now() < expired; }));

    longest_time longest;
    std::size_t removed = 0, steps = 0;
    std::ptrdiff_t grown = 0;
    const auto began = std::chrono::steady_clock::now();
    {
        const byte_count counted;
        colock::list_outcome step;
        do {
            step = stored.run_and_measure(
                stored.backend->listing(
                    {.action = colock::listing_action::purge, .cursor = std::move(step.next), .limit = 1000}),
                longest);
            expect(!step.error, step.error ? step.error->detail : "");
            removed += step.locks.size();
            ++steps;
            grown = std::max(grown, counted.grown());
        } while (!step.next.empty());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    add(results, name + " purged, longest handler", longest);
    results.add({name + " purged, removed", static_cast<double>(removed), ""});
    results.add({name + " purged, steps", static_cast<double>(steps), ""});
    results.add({name + " purged, heap at most", static_cast<double>(grown) / 1024, "KiB", 4096.0});
    results.add({name + " purged in", took.count(), "s"});
    stored.release_all();
}

} // namespace

void measure_listing(const options& settings, report& results)
{
    // A short run is made for the counted numbers. A small size is enough for them.
    const std::size_t size = settings.seconds < 0.5 ? 2000 : 100'000;
    const auto name = std::to_string(size) + " locks";
    stored_locks stored(settings.backend);
    results.begin("Lists and purges: longest handler and heap");
    measure_pages(stored, size, name, results);
    measure_purge(stored, size, name, results);
    bool over = false;
    asio::co_spawn(
        stored.io,
        [](colock::locker last, bool& done) -> asio::awaitable<void> {
            co_await last.shutdown();
            done = true;
        }(stored.locker, over),
        asio::detached);
    static_cast<void>(longest_handler(stored.io, [&] { return !over; }));
}

} // namespace bench
