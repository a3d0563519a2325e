// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/spi/contact.hpp>

#include <colock/observer.hpp>
#include <colock/spi/adapter.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0 {

namespace {

/// Maximum number of warnings that are remembered for each observer.
constexpr std::size_t max_warnings = 100;

/// An observer, and what it has been told.
struct attached_observer
{
    std::weak_ptr<observer> target;
    /// Connection failures reported since the backend could last be reached: cause and address.
    std::vector<std::pair<error_code, std::string>> failures{};
    /// Texts of the warnings.
    std::set<std::string, std::less<>> warnings{};
    bool ready_reported = false;

    /// Returns whether this is a new failure, and remembers it. Without memory, a failure counts as new.
    [[nodiscard]] bool note_failure(const error_code& cause, std::string_view address) noexcept
    {
        const auto is_same = [&](const auto& each) { return each.first == cause && each.second == address; };
        if (std::ranges::any_of(failures, is_same))
            return false;
        try {
            failures.emplace_back(cause, address);
        } catch (const std::bad_alloc&) {
            return true;
        }
        return true;
    }
    /// Returns whether this is a new warning, and remembers it. Without memory, a warning counts as new.
    [[nodiscard]] bool note_warning(std::string_view message) noexcept
    {
        // Limits the memory: a server may put changing numbers into its texts, so that each warning is new.
        if (warnings.size() >= max_warnings)
            warnings.clear();
        try {
            return warnings.emplace(message).second;
        } catch (const std::bad_alloc&) {
            return true;
        }
    }
    /// Returns whether a warning with this cause was reported. Compares in both directions, because the failure of a
    /// quorum contains the text of one of its nodes.
    [[nodiscard]] bool has_warned_of(std::string_view cause) const noexcept
    {
        return std::ranges::any_of(warnings,
            [&](const std::string& each) { return each.find(cause) != each.npos || cause.find(each) != cause.npos; });
    }
};

constexpr auto all_observers = [](const auto&) { return true; };

/// Returns `list` without the expired elements, and with `added`.
template <class Element, class IsExpired>
std::shared_ptr<const std::vector<Element>> copy_with(
    const std::vector<Element>& list, Element added, IsExpired is_expired)
{
    auto result = std::make_shared<std::vector<Element>>();
    std::ranges::remove_copy_if(list, std::back_inserter(*result), is_expired);
    result->push_back(std::move(added));
    return result;
}

} // namespace

struct contact::state
{
    using contact_event = void (contact_watcher::*)() noexcept;
    /// Must be called without the mutex.
    void notify_watchers(contact_event event) noexcept
    {
        std::unique_lock guard(mutex);
        const auto targets = watchers;
        guard.unlock();
        for (const auto& each : *targets) {
            if (const auto watcher = each.lock())
                ((*watcher).*event)();
        }
    }

    mutable std::mutex mutex;
    // The lists are replaced as a whole, so that a notification needs no memory for a copy.
    std::shared_ptr<const std::vector<std::shared_ptr<attached_observer>>> observers =
        std::make_shared<std::vector<std::shared_ptr<attached_observer>>>();
    std::shared_ptr<const std::vector<std::weak_ptr<contact_watcher>>> watchers =
        std::make_shared<std::vector<std::weak_ptr<contact_watcher>>>();
    failure_ptr connection_failure;
    /// Why nothing could be sent when the adapter last began to connect. Null once it is connected or idle.
    failure_ptr connecting_failure;
    /// The failure that is reported if there is no memory to describe another one.
    const failure_ptr plain_failure = make_failure(errc::unavailable, "there is no connection");
    /// The backend has been reachable at least once.
    bool was_ready = false;
    bool is_up = false;
    std::atomic<std::uint64_t> reconnects{0};
    std::atomic<lease_clock::rep> connected_at{0};
};

contact::contact(const adapter& owner) : owner_(owner), state_(std::make_unique<state>()) {}

contact::~contact() = default;

void contact::attach(const std::shared_ptr<observer>& target)
{
    bool is_ready = false;
    {
        const std::lock_guard guard(state_->mutex);
        const auto& known = *state_->observers;
        if (std::ranges::any_of(known, [&](const auto& each) { return each->target.lock() == target; }))
            return;
        is_ready = state_->was_ready && !state_->connection_failure;
        state_->observers = copy_with(known,
            std::make_shared<attached_observer>(attached_observer{.target = target, .ready_reported = is_ready}),
            [](const auto& each) { return each->target.expired(); });
    }
    if (is_ready)
        target->ready(owner_.traits().name);
}

void contact::watch(const std::shared_ptr<contact_watcher>& watcher)
{
    const std::lock_guard guard(state_->mutex);
    state_->watchers = copy_with(
        *state_->watchers, std::weak_ptr<contact_watcher>(watcher), [](const auto& each) { return each.expired(); });
}

failure_ptr contact::connection_failure() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->connection_failure ? state_->connection_failure : state_->connecting_failure;
}

std::uint64_t contact::reconnects() const noexcept
{
    return state_->reconnects.load(std::memory_order_relaxed);
}

lease_clock::time_point contact::connected_at() const noexcept
{
    return lease_clock::time_point(lease_clock::duration(state_->connected_at.load(std::memory_order_acquire)));
}

template <class Selector, class Event>
void contact::notify(Selector is_selected, Event event) noexcept
{
    std::unique_lock guard(state_->mutex);
    const auto observers = state_->observers;
    guard.unlock();
    for (const auto& each : *observers) {
        guard.lock();
        const auto target = each->target.lock();
        const bool is_notified = target && is_selected(*each);
        guard.unlock();
        if (is_notified)
            event(*target);
    }
}

void contact::set_connecting(std::string_view address) noexcept
{
    auto failure = state_->plain_failure;
    try {
        failure =
            make_failure(errc::unavailable, "no connection to " + std::string(address) + " has been established yet");
    } catch (const std::bad_alloc&) {
    }
    const std::lock_guard guard(state_->mutex);
    state_->is_up = false;
    state_->connecting_failure = std::move(failure);
}

void contact::set_idle() noexcept
{
    const std::lock_guard guard(state_->mutex);
    state_->is_up = false;
    state_->connecting_failure = nullptr;
}

void contact::set_up(lease_clock::time_point connected_at) noexcept
{
    bool is_first = false;
    bool is_regained = false;
    bool was_up = false;
    {
        const std::lock_guard guard(state_->mutex);
        is_first = !std::exchange(state_->was_ready, true);
        if (is_first)
            state_->connected_at.store(connected_at.time_since_epoch().count(), std::memory_order_release);
        was_up = std::exchange(state_->is_up, true);
        state_->connecting_failure = nullptr;
        is_regained = std::exchange(state_->connection_failure, nullptr) != nullptr;
        for (const auto& each : *state_->observers)
            each->failures.clear();
    }
    if (!is_first && !is_regained && !was_up)
        return;
    if (!is_first)
        state_->reconnects.fetch_add(1, std::memory_order_relaxed);
    // An observer that was attached while the backend was unreachable has not received `ready` yet, and receives it
    // now.
    bool ready_reported = false;
    notify(
        [&](attached_observer& each) {
            ready_reported = std::exchange(each.ready_reported, true);
            return true;
        },
        [&](observer& target) {
            ready_reported ? target.reconnected(owner_.traits().name) : target.ready(owner_.traits().name);
        });
    if (is_regained)
        state_->notify_watchers(&contact_watcher::on_contact_regained);
}

void contact::set_down(const failure_ptr& failure, std::string_view address) noexcept
{
    const error_code cause = failure->cause ? failure->cause : failure->code;
    bool was_up = false;
    bool is_lost = false;
    {
        const std::lock_guard guard(state_->mutex);
        was_up = std::exchange(state_->is_up, false);
        is_lost = state_->was_ready && !state_->connection_failure;
        state_->connection_failure = failure;
    }
    if (was_up) {
        notify(all_observers, [&](observer& target) { target.suspended(owner_.traits().name, cause); });
    } else {
        notify([&](attached_observer& each) { return each.note_failure(cause, address); },
            [&](observer& target) { target.unreachable(owner_.traits().name, cause, address, failure->detail); });
    }
    if (is_lost)
        state_->notify_watchers(&contact_watcher::on_contact_lost);
}

void contact::set_down(const error_code& error) noexcept
{
    auto described = state_->plain_failure;
    try {
        described = make_failure(errc::unavailable, "the connection was lost", error);
    } catch (const std::bad_alloc&) {
    }
    set_down(described);
}

void contact::report_unreachable(const error_code& error, std::string_view address, std::string_view detail) noexcept
{
    notify(all_observers, [&](observer& target) { target.unreachable(owner_.traits().name, error, address, detail); });
}

void contact::warn(std::string_view message) noexcept
{
    notify([&](attached_observer& each) { return each.note_warning(message); },
        [&](observer& target) { target.warning(owner_.traits().name, message); });
}

void contact::warn_of_refusal(const failure& failure) noexcept
{
    const bool is_refusal = failure.code == errc::access_denied || failure.code == errc::misconfigured_backend;
    if (!is_refusal || failure.detail.empty())
        return;
    notify(
        [&](attached_observer& each) {
            return !each.has_warned_of(failure.detail) && each.note_warning(failure.detail);
        },
        [&](observer& target) { target.warning(owner_.traits().name, failure.detail); });
}

} // namespace colock::inline v0
