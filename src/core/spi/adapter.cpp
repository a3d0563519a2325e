// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/spi/adapter.hpp>

#include <colock/observer.hpp>

#include "core/spi/release_then_create.hpp"
#include "util/await_completion.hpp"
#include "util/context_service.hpp"
#include "util/cursor.hpp"
#include "util/option_errors.hpp"
#include "util/unsupported.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace colock::inline v0 {

failure_ptr make_failure(errc code, std::string detail, error_code cause)
{
    return std::make_shared<const failure>(failure{code, cause, std::move(detail)});
}

struct adapter::listeners
{
    /// Maximum number of warnings that are remembered for each observer.
    static constexpr std::size_t max_warnings = 100;

    struct listener
    {
        std::weak_ptr<observer> who;
        /// Connection failures reported since the backend could last be reached: cause and address.
        std::vector<std::pair<error_code, std::string>> reported{};
        /// Texts of the warnings.
        std::set<std::string, std::less<>> warned{};
        bool knows_ready = false;

        /// Returns whether this is a new warning, and remembers it.
        [[nodiscard]] bool note_warning(std::string_view message)
        {
            // A server may put changing numbers into its texts.
            if (warned.size() >= max_warnings)
                warned.clear();
            return warned.emplace(message).second;
        }
        /// Returns whether a warning has contained this cause. The failure of a quorum contains the warning about one
        /// of its nodes.
        [[nodiscard]] bool knows_cause(std::string_view cause) const
        {
            return std::ranges::any_of(warned, [&](const std::string& each) {
                return each.find(cause) != each.npos || cause.find(each) != cause.npos;
            });
        }
    };

    using contact_event = void (contact_watcher::*)() noexcept;
    /// Must be called without the mutex.
    void notify_contact(contact_event what) noexcept
    {
        std::vector<std::shared_ptr<contact_watcher>> targets;
        {
            const std::lock_guard guard(mutex);
            for (const auto& each : watchers) {
                if (auto watcher = each.lock())
                    targets.push_back(std::move(watcher));
            }
        }
        for (const auto& each : targets)
            ((*each).*what)();
    }

    mutable std::mutex mutex;
    std::vector<listener> known;
    std::vector<std::weak_ptr<contact_watcher>> watchers;
    failure_ptr connection_failure;
    /// Why nothing has been sent yet. Null if a connection exists, or none was requested.
    failure_ptr no_connection;
    /// The backend has been reachable at least once.
    bool ready = false;
    /// Clears the connection failure and the reported failures. Returns whether there was a connection failure.
    bool end_connection_failure() noexcept
    {
        no_connection = nullptr;
        const bool had_failed = std::exchange(connection_failure, nullptr) != nullptr;
        for (auto& each : known)
            each.reported.clear();
        return had_failed;
    }

    std::atomic<std::uint64_t> reconnects{0};
    std::atomic<std::uint64_t> unproven{0};
    std::atomic<unsigned> users{0};
    std::atomic<lease_clock::rep> connected_at{0};
};

namespace {

asio::any_io_executor checked(asio::any_io_executor executor)
{
    if (!executor)
        detail::refuse_options({}, "the executor is empty; pass one, such as io_context::get_executor()");
    return executor;
}

} // namespace

adapter::adapter(asio::any_io_executor executor)
    : executor_(detail::executor_cell::make(checked(std::move(executor)))), listeners_(std::make_unique<listeners>())
{
}

adapter::~adapter() = default;

asio::any_io_executor adapter::executor() const
{
    return executor_->get();
}

void adapter::start_wait(claim_ptr, lease_clock::time_point, completion<woken>) {}

void adapter::cancel_wait(claim&) noexcept {}

void adapter::start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
{
    const detail::release_then_create::ptr operation(
        new detail::release_then_create(shared_from_this(), std::move(next), std::move(done)));
    operation->start(std::move(held));
}

void adapter::start_listing(listing_request, completion<list_outcome> done)
{
    done(detail::cannot_list(traits().name));
}

void adapter::start_create_all(std::vector<claim_ptr>, completion<create_all_outcome> done)
{
    auto why = detail::cannot(traits().name, "take several locks in one step");
    done({.status = create_status::failed, .why = create_outcome::failed(std::move(why))});
}

void adapter::start_group(std::string, group_action, std::chrono::milliseconds, completion<group_outcome> done)
{
    done({.error = detail::cannot(traits().name, "access a group of locks by its id")});
}

void adapter::start_export(claim_ptr, completion<export_outcome> done)
{
    done({.error = detail::cannot(traits().name, "move locks to another process")});
}

void adapter::start_adopt(std::string, claim_ptr, completion<create_outcome> done)
{
    done(create_outcome::failed(detail::cannot(traits().name, "take over a lock from another process")));
}

void adapter::start_close(lease_clock::duration, completion<closed> done)
{
    done(closed{});
}

void adapter::attach(const std::shared_ptr<observer>& listener)
{
    bool is_ready = false;
    {
        const std::lock_guard guard(listeners_->mutex);
        auto& known = listeners_->known;
        std::erase_if(known, [](const auto& each) { return each.who.expired(); });
        if (std::ranges::any_of(known, [&](const auto& each) { return each.who.lock() == listener; }))
            return;
        is_ready = listeners_->ready && !listeners_->connection_failure;
        known.push_back({.who = listener, .knows_ready = is_ready});
    }
    if (is_ready)
        listener->ready(traits().name);
}

void adapter::watch_contact(const std::shared_ptr<contact_watcher>& watcher)
{
    const std::lock_guard guard(listeners_->mutex);
    std::erase_if(listeners_->watchers, [](const auto& each) { return each.expired(); });
    listeners_->watchers.push_back(watcher);
}

void adapter::add_user() noexcept
{
    if (listeners_->users.fetch_add(1, std::memory_order_acq_rel) == 0)
        cancel_close();
}

bool adapter::remove_user() noexcept
{
    return listeners_->users.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

bool adapter::has_users() const noexcept
{
    return listeners_->users.load(std::memory_order_acquire) != 0;
}

std::uint64_t adapter::reconnects() const noexcept
{
    return listeners_->reconnects.load(std::memory_order_relaxed);
}

std::uint64_t adapter::unproven() const noexcept
{
    return listeners_->unproven.load(std::memory_order_relaxed);
}

void adapter::count_unproven(std::uint64_t parts) noexcept
{
    listeners_->unproven.fetch_add(parts, std::memory_order_relaxed);
}

std::chrono::milliseconds adapter::max_clock_lead(std::chrono::milliseconds) const noexcept
{
    return std::chrono::milliseconds(0);
}

failure_ptr adapter::connection_failure() const
{
    const std::lock_guard guard(listeners_->mutex);
    return listeners_->connection_failure ? listeners_->connection_failure : listeners_->no_connection;
}

template <class Selector, class Event>
void adapter::notify(Selector is_selected, Event event) noexcept
{
    std::vector<std::shared_ptr<observer>> targets;
    {
        const std::lock_guard guard(listeners_->mutex);
        for (auto& known : listeners_->known) {
            auto listener = known.who.lock();
            if (listener && is_selected(known))
                targets.push_back(std::move(listener));
        }
    }
    for (const auto& listener : targets)
        event(*listener);
}

namespace {

constexpr auto everyone = [](const auto&) { return true; };

} // namespace

lease_clock::time_point adapter::connected_at() const noexcept
{
    return lease_clock::time_point(lease_clock::duration(listeners_->connected_at.load(std::memory_order_acquire)));
}

void adapter::notify_connecting(std::string_view address) noexcept
{
    auto why =
        make_failure(errc::unavailable, "no connection to " + std::string(address) + " has been established yet");
    const std::lock_guard guard(listeners_->mutex);
    listeners_->no_connection = std::move(why);
}

void adapter::end_connecting() noexcept
{
    const std::lock_guard guard(listeners_->mutex);
    listeners_->no_connection = nullptr;
}

void adapter::notify_ready(lease_clock::time_point connected_at) noexcept
{
    std::vector<std::shared_ptr<observer>> targets;
    bool is_regained = false;
    {
        const std::lock_guard guard(listeners_->mutex);
        if (!std::exchange(listeners_->ready, true))
            listeners_->connected_at.store(connected_at.time_since_epoch().count(), std::memory_order_release);
        is_regained = listeners_->end_connection_failure();
        for (auto& known : listeners_->known) {
            known.knows_ready = true;
            if (auto listener = known.who.lock())
                targets.push_back(std::move(listener));
        }
    }
    for (const auto& listener : targets)
        listener->ready(traits().name);
    if (is_regained)
        listeners_->notify_contact(&contact_watcher::on_contact_regained);
}

void adapter::notify_unreachable(const failure_ptr& why, std::string_view address) noexcept
{
    const std::pair failure_id(why->cause ? why->cause : why->code, std::string(address));
    std::vector<std::shared_ptr<observer>> targets;
    bool is_lost = false;
    {
        const std::lock_guard guard(listeners_->mutex);
        is_lost = listeners_->ready && !listeners_->connection_failure;
        listeners_->connection_failure = why;
        for (auto& known : listeners_->known) {
            auto listener = known.who.lock();
            if (!listener || std::ranges::find(known.reported, failure_id) != known.reported.end())
                continue;
            known.reported.push_back(failure_id);
            targets.push_back(std::move(listener));
        }
    }
    for (const auto& listener : targets)
        listener->unreachable(traits().name, failure_id.first, address, why->detail);
    if (is_lost)
        listeners_->notify_contact(&contact_watcher::on_contact_lost);
}

void adapter::report_unreachable(const error_code& why, std::string_view address, std::string_view detail) noexcept
{
    notify(everyone, [&](observer& listener) { listener.unreachable(traits().name, why, address, detail); });
}

void adapter::notify_suspended(const error_code& why) noexcept
{
    bool is_lost = false;
    {
        const std::lock_guard guard(listeners_->mutex);
        is_lost = !listeners_->connection_failure;
        listeners_->connection_failure = make_failure(errc::unavailable, "the connection was lost", why);
    }
    notify(everyone, [&](observer& listener) { listener.suspended(traits().name, why); });
    if (is_lost)
        listeners_->notify_contact(&contact_watcher::on_contact_lost);
}

void adapter::notify_reconnected() noexcept
{
    listeners_->reconnects.fetch_add(1, std::memory_order_relaxed);
    std::vector<std::pair<std::shared_ptr<observer>, bool>> targets;
    bool is_regained = false;
    {
        const std::lock_guard guard(listeners_->mutex);
        is_regained = listeners_->end_connection_failure();
        for (auto& known : listeners_->known) {
            // An observer that was attached while the backend was unreachable has not received `ready` yet, and
            // receives it now.
            const bool knows = std::exchange(known.knows_ready, true) || !listeners_->ready;
            if (auto listener = known.who.lock())
                targets.emplace_back(std::move(listener), knows);
        }
    }
    for (const auto& [listener, knows] : targets) {
        if (knows)
            listener->reconnected(traits().name);
        else
            listener->ready(traits().name);
    }
    if (is_regained)
        listeners_->notify_contact(&contact_watcher::on_contact_regained);
}

void adapter::notify_warning(std::string_view message) noexcept
{
    notify([&](auto& known) { return known.note_warning(message); },
        [&](observer& listener) { listener.warning(traits().name, message); });
}

void adapter::warn_of_refusal(const failure& why) noexcept
{
    const bool is_refusal = why.code == errc::access_denied || why.code == errc::misconfigured_backend;
    if (!is_refusal || why.detail.empty())
        return;
    notify([&](auto& known) { return !known.knows_cause(why.detail) && known.note_warning(why.detail); },
        [&](observer& listener) { listener.warning(traits().name, why.detail); });
}

namespace {

/// Returns the awaitable form of an operation.
template <class Outcome, class Start, class... Arguments>
asio::awaitable<Outcome> await_operation(std::shared_ptr<adapter> self, Start start, Arguments... arguments)
{
    return detail::await_completion<Outcome>(
        [self = std::move(self), start, ... arguments = std::move(arguments)](
            auto done) mutable { std::invoke(start, *self, std::move(arguments)..., std::move(done)); });
}

} // namespace

asio::awaitable<create_outcome> adapter::create(claim_ptr claim)
{
    return await_operation<create_outcome>(shared_from_this(), &adapter::start_create, std::move(claim));
}

asio::awaitable<release_outcome> adapter::release(claim_ptr claim, release_guarantee guarantee)
{
    return await_operation<release_outcome>(shared_from_this(), &adapter::start_release, std::move(claim), guarantee);
}

asio::awaitable<extend_outcome> adapter::extend(claim_ptr claim, std::chrono::milliseconds ttl)
{
    return await_operation<extend_outcome>(shared_from_this(), &adapter::start_extend, std::move(claim), ttl);
}

asio::awaitable<valid_outcome> adapter::is_valid(claim_ptr claim)
{
    return await_operation<valid_outcome>(shared_from_this(), &adapter::start_is_valid, std::move(claim));
}

asio::awaitable<woken> adapter::wait(claim_ptr claim, lease_clock::time_point until)
{
    return await_operation<woken>(shared_from_this(), &adapter::start_wait, std::move(claim), until);
}

asio::awaitable<hand_over_outcome> adapter::hand_over(claim_ptr held, claim_ptr next)
{
    return await_operation<hand_over_outcome>(
        shared_from_this(), &adapter::start_hand_over, std::move(held), std::move(next));
}

asio::awaitable<list_outcome> adapter::listing(listing_request request)
{
    return await_operation<list_outcome>(shared_from_this(), &detail::start_listing, std::move(request));
}

asio::awaitable<closed> adapter::close(lease_clock::duration deadline)
{
    return await_operation<closed>(shared_from_this(), &adapter::start_close, deadline);
}

} // namespace colock::inline v0
