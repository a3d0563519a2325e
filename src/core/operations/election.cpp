// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/election_operations.hpp>

#include "core/operations/operations.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/core.hpp"
#include "util/text_escaping.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

namespace colock::inline v0::detail::operations {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds shortest_delay = 1s;
constexpr std::chrono::seconds longest_delay = 30s;
constexpr lease_clock::duration poll_interval = 1s;

/// One campaign, and the term after it.
struct term
{
    body_ref<leadership> body;
    /// When the body was called; empty if it was not.
    std::optional<lease_clock::time_point> began{};

    static asio::awaitable<void> run(void* object, leadership& handle)
    {
        auto& self = *static_cast<term*>(object);
        self.began = lease_clock::now();
        return self.body.run(self.body.object, handle);
    }
    [[nodiscard]] body_ref<leadership> ref() noexcept { return {this, &run, nullptr}; }
};

/// Whether the lock of the leader was lost. A body may throw a `lost_error` of another lock.
bool is_lost(const std::exception_ptr& failure, std::string_view key) noexcept
{
    try {
        std::rethrow_exception(failure);
    } catch (const lost_error& lost) {
        return lost.key() == key;
    } catch (...) {
        return false;
    }
}

std::string text_of(const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& thrown) {
        return thrown.what();
    } catch (...) {
        return "an exception of an unknown type";
    }
}

/// Tells the observer of an exception that would otherwise be ignored.
void report_exception(
    const core& self, std::string_view key, const std::exception_ptr& failure, std::chrono::seconds delay) noexcept
{
    if (!self.options.observer)
        return;
    try {
        self.options.observer->warning(self.backend->traits().name,
            "the work of the leader of " + quoted(key) + " ended with an exception: " + printable(text_of(failure)) +
                "; the next campaign begins in " + std::to_string(delay.count()) + " s");
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): without memory, the event is dropped
    }
}

/// Waits until the time `until`, or until the locker closes.
asio::awaitable<void> pause(const std::shared_ptr<core>& self, lease_clock::time_point until)
{
    condition timeout;
    co_await wait_until(*self, timeout, until, [&] { return self->closed_to_new.load(); }, on_close::end_wait);
}

void throw_if_leaders_unsupported(const core& self, const std::string& key)
{
    if (!self.can.lists_fence) {
        throw validation_error(errc::unsupported,
            {.key = key,
                .backend = self.backend_name(),
                .detail = self.backend_name() + " does not list the fences of its locks, so it cannot name a leader"});
    }
}

} // namespace

asio::awaitable<leadership> campaign(std::shared_ptr<core> self, std::string key, acquire_options options)
{
    const auto mode = options.mode;
    auto record = prepare(self, std::move(key), std::move(options), renewal::automatic, true);
    if (!record->acquire_state().input_failure && mode != lock_mode::exclusive) {
        record->acquire_state().input_failure = std::make_unique<const failure>(
            failure{.code = errc::invalid_options, .detail = "an election has one leader; its mode is exclusive"});
    }
    record->is_leadership = true;
    co_return core::make_leadership(co_await acquire(std::move(self), std::move(record)));
}

asio::awaitable<void> run_terms(
    std::shared_ptr<core> self, std::string key, acquire_options options, body_ref<leadership> body)
{
    std::chrono::seconds delay{0};
    for (;;) {
        term current{body};
        std::exception_ptr failure;
        try {
            co_await run_term(self, key, options, current.ref());
        } catch (...) {
            failure = std::current_exception();
        }
        const auto end = lease_clock::now();
        throw_if_cancelled(co_await asio::this_coro::cancellation_state);
        if (self->closed_to_new)
            co_return;
        if (!failure) {
            delay = 0s;
            // On a backend that answers at once, nothing else would let other handlers run.
            co_await asio::post(asio::deferred);
            continue;
        }
        const bool lost = is_lost(failure, key);
        if (!lost && !current.began)
            std::rethrow_exception(std::move(failure));
        const bool was_long = current.began && end - *current.began >= longest_delay;
        delay = was_long ? shortest_delay : std::clamp(2 * delay, shortest_delay, longest_delay);
        if (!lost)
            report_exception(*self, key, failure, delay);
        failure = nullptr;
        co_await pause(self, saturating_add(end, delay));
    }
}

asio::awaitable<std::optional<leader>> find_leader(std::shared_ptr<core> self, std::string key)
{
    throw_if_leaders_unsupported(*self, key);
    auto found = co_await holders(std::move(self), std::move(key));
    for (auto& each : found) {
        if (each.mode == lock_mode::exclusive)
            co_return leader{.owner = std::move(each.owner),
                .host = std::move(each.host),
                .comment = std::move(each.comment),
                .term = each.fence};
    }
    co_return std::nullopt;
}

asio::awaitable<leader> await_leader(std::shared_ptr<core> self, std::string key, std::uint64_t after_term)
{
    for (;;) {
        auto found = co_await find_leader(self, key);
        if (found && found->term > after_term)
            co_return *std::move(found);
        co_await pause(self, saturating_add(lease_clock::now(), poll_interval));
        if (self->closed_to_new)
            throw create_error(errc::shutting_down, {.key = std::move(key), .backend = self->backend_name()});
    }
}

} // namespace colock::inline v0::detail::operations
