// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/testing/history.hpp>

#include <colock/clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace colock::testing {

namespace {

/// The begin or the end of work.
struct event
{
    lease_clock::duration time{0};
    bool is_end = false;
    std::string resource{};
    std::uint64_t fence = 0;
    lock_mode mode = lock_mode::exclusive;
    /// Whether the lock of the work was held.
    bool is_held = true;
    /// The number of the work, counted from 1.
    std::size_t number = 0;
};

std::string name_of(const event& work)
{
    return "work " + std::to_string(work.number) +
           (work.fence != 0 ? " (fence " + std::to_string(work.fence) + ")" : std::string());
}

std::string text_of(const event& each)
{
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), "%10.3f s  ", std::chrono::duration<double>(each.time).count());
    return time.data() + each.resource + ": " + name_of(each) + (each.is_end ? " ends" : " begins") +
           (!each.is_end && each.mode == lock_mode::shared ? ", shared" : "");
}

/// Replays a history, and collects what violates the rules.
class rule_checker
{
public:
    void replay(const event& each)
    {
        if (each.is_end)
            std::erase_if(
                resources_[each.resource].current, [&](const event& begun) { return begun.number == each.number; });
        else
            begin_work(each);
    }

    [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

private:
    struct resource
    {
        /// Work that has begun and not ended.
        std::vector<event> current{};
        /// Work with the highest fence, of each mode.
        event highest_exclusive{};
        event highest_shared{};
    };

    void begin_work(const event& work)
    {
        auto& target = resources_[work.resource];
        const bool is_shared = work.mode == lock_mode::shared;
        for (const event& other : target.current) {
            if (!is_shared || other.mode != lock_mode::shared)
                report(work, "before " + name_of(other) + " has ended");
        }
        const auto check_fence = [&](const event& highest) {
            if (work.fence != 0 && work.fence < highest.fence)
                report(work, "after " + name_of(highest) + ", which has a higher fence");
        };
        check_fence(target.highest_exclusive);
        if (!is_shared)
            check_fence(target.highest_shared);
        if (!work.is_held)
            report(work, "although its lock is not held");
        auto& highest = is_shared ? target.highest_shared : target.highest_exclusive;
        if (work.fence > highest.fence)
            highest = work;
        target.current.push_back(work);
    }

    void report(const event& work, const std::string& problem)
    {
        violations_.push_back(work.resource + ": " + name_of(work) + " begins " + problem);
    }

    std::map<std::string, resource> resources_;
    std::vector<std::string> violations_;
};

} // namespace

struct history::state : std::enable_shared_from_this<state>
{
    /// Appends an event. Returns it with its time, and with the number of new work.
    event add(event next)
    {
        const std::lock_guard guard(mutex);
        next.time = lease_clock::now() - start;
        if (!next.is_end)
            next.number = ++work_count;
        events.push_back(next);
        return next;
    }
    [[nodiscard]] work begin(event begun);
    [[nodiscard]] std::vector<event> copy() const
    {
        const std::lock_guard guard(mutex);
        return events;
    }

    const lease_clock::time_point start = lease_clock::now();
    mutable std::mutex mutex;
    std::vector<event> events;
    std::size_t work_count = 0;
};

struct history::work::state
{
    std::shared_ptr<history::state> target;
    event begun;
};

history::work::work(std::unique_ptr<state> begun) noexcept : state_(std::move(begun)) {}
history::work::work(work&&) noexcept = default;

history::work::~work()
{
    if (!state_)
        return;
    state_->begun.is_end = true;
    state_->target->add(std::move(state_->begun));
}

history::history() : state_(std::make_shared<state>()) {}
history::~history() = default;

history::work history::state::begin(event begun)
{
    auto added = add(std::move(begun));
    return work(std::make_unique<work::state>(shared_from_this(), std::move(added)));
}

history::work history::begin_work(std::string resource, std::uint64_t fence, lock_mode mode)
{
    return state_->begin({.resource = std::move(resource), .fence = fence, .mode = mode});
}

history::work history::begin_work(const lock& held)
{
    return state_->begin({.resource = held.key(), .fence = held.fence(), .mode = held.mode(), .is_held = held.held()});
}

std::string history::check() const
{
    rule_checker checker;
    for (const event& each : state_->copy())
        checker.replay(each);
    if (checker.violations().empty())
        return {};
    std::string result;
    for (const std::string& violation : checker.violations())
        result += violation + "\n";
    return result + text();
}

std::string history::text() const
{
    std::string result;
    for (const event& each : state_->copy())
        result += text_of(each) + "\n";
    return result;
}

} // namespace colock::testing
