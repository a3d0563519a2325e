// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/testing/history.hpp>

#include <colock/clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

namespace {

enum class event_kind : unsigned char
{
    granted,
    lost,
    released,
    work_began,
    work_ended,
};

struct event
{
    lease_clock::duration time{0};
    event_kind kind{};
    /// The key, or the resource of the work.
    std::string resource{};
    std::uint64_t fence = 0;
    /// The process, if the event concerns a lock.
    std::string process{};
    /// The reason of a loss.
    lost_reason reason{};
    /// The number of the work, counted from 1.
    std::size_t number = 0;
    lock_mode mode = lock_mode::exclusive;
};

std::string name_of_work(const event& work)
{
    return "work " + std::to_string(work.number) +
           (work.fence != 0 ? " (fence " + std::to_string(work.fence) + ")" : std::string());
}

std::string end_of_lock(const event& end)
{
    return end.kind == event_kind::lost ? "lost by " + end.process + " (" + to_string(end.reason) + ")"
                                        : "released by " + end.process;
}

std::string text_of(const event& each)
{
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), "%10.3f s  ", std::chrono::duration<double>(each.time).count());
    std::string line = time.data() + each.resource + ": ";
    switch (each.kind) {
    case event_kind::granted:
        return line + "granted to " + each.process + ", fence " + std::to_string(each.fence);
    case event_kind::lost:
    case event_kind::released:
        return line + end_of_lock(each);
    case event_kind::work_began:
        return line + name_of_work(each) + (each.mode == lock_mode::shared ? " begins, shared" : " begins");
    case event_kind::work_ended:
        return line + name_of_work(each) + " ends";
    }
    return line;
}

/// Replays a history, and collects what violates the rules.
class rule_checker
{
public:
    void replay(const event& each)
    {
        switch (each.kind) {
        case event_kind::granted:
            held_[{each.process, each.resource}].fences.push_back(each.fence);
            ended_.erase({each.resource, each.fence});
            break;
        case event_kind::lost:
        case event_kind::released:
            end_lock(each);
            break;
        case event_kind::work_began:
            begin_work(each);
            break;
        case event_kind::work_ended:
            std::erase_if(
                resources_[each.resource].current, [&](const event& begun) { return begun.number == each.number; });
            break;
        }
    }

    [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

private:
    /// The locks of one key that one process holds.
    struct holds
    {
        std::vector<std::uint64_t> fences{};
        std::size_t ended_count = 0;
    };
    struct resource
    {
        /// Work that has begun and not ended.
        std::vector<event> current{};
        /// Work with the highest fence, of each mode.
        event highest_exclusive{};
        event highest_shared{};
    };

    /// The event has no fence. If a process holds several shared locks of a key, it is not known which one has ended,
    /// so they count as ended when all of them have.
    void end_lock(const event& end)
    {
        auto& locks = held_[{end.process, end.resource}];
        if (++locks.ended_count < locks.fences.size())
            return;
        for (const auto fence : locks.fences)
            ended_.insert_or_assign({end.resource, fence}, end);
        held_.erase({end.process, end.resource});
    }

    void begin_work(const event& work)
    {
        auto& target = resources_[work.resource];
        const bool is_shared = work.mode == lock_mode::shared;
        for (const event& other : target.current) {
            if (!is_shared || other.mode != lock_mode::shared)
                report(work, "before " + name_of_work(other) + " has ended");
        }
        const auto check_fence = [&](const event& highest) {
            if (work.fence != 0 && work.fence < highest.fence)
                report(work, "after " + name_of_work(highest) + ", which has a higher fence");
        };
        check_fence(target.highest_exclusive);
        if (!is_shared)
            check_fence(target.highest_shared);
        if (const auto end = ended_.find({work.resource, work.fence}); end != ended_.end())
            report(work, "after its lock was " + end_of_lock(end->second));
        auto& highest = is_shared ? target.highest_shared : target.highest_exclusive;
        if (work.fence > highest.fence)
            highest = work;
        target.current.push_back(work);
    }

    void report(const event& work, const std::string& problem)
    {
        violations_.push_back(work.resource + ": " + name_of_work(work) + " begins " + problem);
    }

    std::map<std::pair<std::string, std::string>, holds> held_;
    /// The end of each lock, by its key and fence.
    std::map<std::pair<std::string, std::uint64_t>, event> ended_;
    std::map<std::string, resource> resources_;
    std::vector<std::string> violations_;
};

} // namespace

struct history::state
{
    /// Appends an event. Returns it with its time, and with the number of new work.
    event add(event next)
    {
        const std::lock_guard guard(mutex);
        next.time = lease_clock::now() - start;
        if (next.kind == event_kind::work_began)
            next.number = ++work_count;
        events.push_back(next);
        return next;
    }
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

class history::process_observer final : public observer
{
public:
    process_observer(std::shared_ptr<state> target, std::string process)
        : target_(std::move(target)), process_(std::move(process))
    {
    }
    void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds) noexcept override
    {
        target_->add({.kind = event_kind::granted, .resource = std::string(key), .fence = fence, .process = process_});
    }
    void lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        target_->add({.kind = event_kind::lost, .resource = std::string(key), .process = process_, .reason = reason});
    }
    void released(std::string_view key, std::chrono::nanoseconds) noexcept override
    {
        target_->add({.kind = event_kind::released, .resource = std::string(key), .process = process_});
    }

private:
    const std::shared_ptr<state> target_;
    const std::string process_;
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
    state_->begun.kind = event_kind::work_ended;
    state_->target->add(std::move(state_->begun));
}

history::history() : state_(std::make_shared<state>()) {}
history::~history() = default;

std::shared_ptr<observer> history::observe(std::string process)
{
    return std::make_shared<process_observer>(state_, std::move(process));
}

history::work history::begin_work(std::string resource, std::uint64_t fence, lock_mode mode)
{
    auto begun =
        state_->add({.kind = event_kind::work_began, .resource = std::move(resource), .fence = fence, .mode = mode});
    return work(std::make_unique<work::state>(state_, std::move(begun)));
}

history::work history::begin_work(const lock& held)
{
    return begin_work(held.key(), held.fence(), held.mode());
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
