// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "listing.hpp"

#include "allocations.hpp"
#include "longest_handler.hpp"
#include "wire.hpp"

#include <colock/connect.hpp>
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

/// Whoever took it is never heard of again.
class stray final : public colock::claim
{
public:
    using claim::claim;
    void lost(colock::lost_reason) noexcept override {}
};

struct crowd_of_locks
{
    asio::io_context io{1};
    std::shared_ptr<colock::adapter> backend;
    colock::locker locker;
    std::vector<colock::claim_ptr> claims{};

    explicit crowd_of_locks(const std::string& url)
        : backend(colock::make_adapter(io.get_executor(), url)), locker(backend, {.operation_timeout = 60s})
    {
    }

    void take(std::size_t count, const std::string& prefix, colock::lock_mode mode, std::chrono::milliseconds ttl)
    {
        const auto first = claims.size();
        for (std::size_t i = 0; i < count; ++i)
            claims.push_back(new stray({.key = prefix + std::to_string(i), .mode = mode, .ttl = ttl}));
        for_each_from(first, [this](const colock::claim_ptr& each) -> asio::awaitable<void> {
            each->set_sent(colock::lease_clock::now());
            const auto outcome = co_await backend->create(each);
            expect(outcome.status == colock::create_status::granted, "a lock was not granted");
        });
    }
    void give_back_all()
    {
        for_each_from(
            0, [this](const colock::claim_ptr& each) -> asio::awaitable<void> { co_await backend->release(each); });
        claims.clear();
    }

    /// Some at a time. What is thrown ends the program.
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
            asio::co_spawn(io, run(), rethrown);
        while (running > 0) {
            io.restart();
            io.run_one();
        }
    }
    template <class Answer>
    Answer until_answered(asio::awaitable<Answer> question, longest_time& longest)
    {
        std::optional<Answer> told;
        asio::co_spawn(
            io,
            [](asio::awaitable<Answer> asked, std::optional<Answer>& into) -> asio::awaitable<void> {
                into.emplace(co_await std::move(asked));
            }(std::move(question), told),
            rethrown);
        const auto took = longest_handler(io, [&] { return !told; });
        longest.cpu = std::max(longest.cpu, took.cpu);
        longest.wall = std::max(longest.wall, took.wall);
        return std::move(*told);
    }

    static constexpr auto rethrown = [](const std::exception_ptr& failure) {
        if (failure)
            std::rethrow_exception(failure);
    };
};

void measure_pages(crowd_of_locks& on, std::size_t size, const std::string& name, report& found)
{
    on.take(size, "l:", colock::lock_mode::exclusive, 1h);
    longest_time longest;
    std::size_t told = 0, pages = 0, largest = 0;
    std::ptrdiff_t grown = 0;
    const auto began = std::chrono::steady_clock::now();
    {
        const byte_count counted;
        colock::lock_page page;
        do {
            page = on.until_answered(on.locker.list_page({}, std::move(page.next)), longest);
            told += page.locks.size();
            largest = std::max(largest, page.locks.size());
            ++pages;
            grown = std::max(grown, counted.grown());
        } while (!page.next.empty());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    expect(told == size, "not every lock was listed once");
    add(found, name + " listed, longest handler", longest);
    found.add({name + " listed, pages", static_cast<double>(pages), ""});
    found.add({name + " listed, locks of the largest page", static_cast<double>(largest), ""});
    found.add({name + " listed, heap at most", static_cast<double>(grown) / 1024, "KiB", 4096.0});
    found.add({name + " listed in", took.count(), "s"});

    longest = {};
    const auto all = on.until_answered(on.locker.list({}, colock::list_order::newest_first), longest);
    add(found, name + " in one list, newest first, longest handler", longest);
    on.give_back_all();
}

void measure_purge(crowd_of_locks& on, std::size_t size, const std::string& name, report& found)
{
    const auto able = on.backend->capabilities();
    if (!able.expires)
        return;
    // Redis ends a key by itself when all of its holders have expired; so there is a reader who lives.
    const bool beside_others = on.backend->name() == "redis";
    const auto mode = beside_others ? colock::lock_mode::shared : colock::lock_mode::exclusive;
    on.take(size, "p:", mode, beside_others ? 10s : 1s);
    on.claims.clear();
    if (beside_others)
        on.take(size, "p:", mode, 1h);
    const auto expired = std::chrono::steady_clock::now() + (beside_others ? 11s : 2s);
    static_cast<void>(longest_handler(on.io, [&] { return std::chrono::steady_clock::now() < expired; }));

    longest_time longest;
    std::size_t removed = 0, steps = 0;
    std::ptrdiff_t grown = 0;
    const auto began = std::chrono::steady_clock::now();
    {
        const byte_count counted;
        colock::list_outcome step;
        do {
            step = on.until_answered(on.backend->purge(1000, std::move(step.next)), longest);
            expect(!step.error, step.error ? step.error->detail : "");
            removed += step.locks.size();
            ++steps;
            grown = std::max(grown, counted.grown());
        } while (!step.next.empty());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    add(found, name + " purged, longest handler", longest);
    found.add({name + " purged, removed", static_cast<double>(removed), ""});
    found.add({name + " purged, steps", static_cast<double>(steps), ""});
    found.add({name + " purged, heap at most", static_cast<double>(grown) / 1024, "KiB", 4096.0});
    found.add({name + " purged in", took.count(), "s"});
    on.give_back_all();
}

} // namespace

void measure_listing(const options& settings, report& found)
{
    // A short run is for counts.
    const std::size_t size = settings.seconds < 0.5 ? 2000 : 100'000;
    const auto name = std::to_string(size) + " locks";
    crowd_of_locks on(settings.backend);
    found.begin("Lists and purges: what they hold up and keep");
    measure_pages(on, size, name, found);
    measure_purge(on, size, name, found);
    bool over = false;
    asio::co_spawn(
        on.io,
        [](colock::locker last, bool& told) -> asio::awaitable<void> {
            co_await last.shutdown();
            told = true;
        }(on.locker, over),
        asio::detached);
    static_cast<void>(longest_handler(on.io, [&] { return !over; }));
}

} // namespace bench
