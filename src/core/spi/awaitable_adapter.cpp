// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/spi/awaitable_adapter.hpp>

#include "core/spi/release_then_create.hpp"
#include "util/unsupported.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace colock::inline v0 {

namespace {

/// The failure of an operation for which there was no memory. Allocated in advance.
const failure_ptr& no_memory_failure()
{
    static const failure_ptr instance = make_failure(errc::outcome_unknown, "there was no memory for the operation",
        make_error_code(boost::system::errc::not_enough_memory));
    return instance;
}

failure_ptr describe(const std::exception_ptr& exception)
try {
    std::rethrow_exception(exception);
} catch (const boost::system::system_error& thrown) {
    if (thrown.code().category() == colock_category())
        return make_failure(static_cast<errc>(thrown.code().value()));
    return make_failure(errc::outcome_unknown, {}, thrown.code());
} catch (const std::exception& thrown) {
    return make_failure(errc::outcome_unknown, thrown.what());
} catch (...) {
    return make_failure(errc::outcome_unknown);
}

/// Returns the failure for an exception. If there is no memory to describe it, returns `no_memory_failure()`.
failure_ptr failure_of(const std::exception_ptr& exception)
{
    try {
        std::rethrow_exception(exception);
    } catch (const std::bad_alloc&) {
        return no_memory_failure();
    } catch (...) {
        try {
            return describe(std::current_exception());
        } catch (const std::bad_alloc&) {
            return no_memory_failure();
        }
    }
}

/// Spawns the coroutine of an operation. The coroutine refers to its adapter by `this`. The handler outlives the
/// coroutine and keeps the adapter alive.
template <class Outcome, class Failed>
void spawn(adapter& owner, asio::awaitable<Outcome> operation, completion<Outcome> done, Failed failed)
{
    const auto executor = owner.executor();
    // The execution context has shut down, so the operation cannot run. `done` is destroyed without a call.
    if (!executor)
        return;
    asio::co_spawn(executor, std::move(operation),
        [self = owner.shared_from_this(), done = std::move(done), failed](const std::exception_ptr& exception,
            Outcome outcome) mutable { done(exception ? failed(failure_of(exception)) : std::move(outcome)); });
}

release_outcome release_failed(failure_ptr error)
{
    return {release_status::failed, std::move(error)};
}

create_all_outcome create_all_failed(failure_ptr error)
{
    return {.status = create_status::failed, .refusal = create_outcome::failed(std::move(error))};
}

list_outcome list_failed(failure_ptr error)
{
    return {.error = std::move(error)};
}

} // namespace

/// The waits in flight, and the cancelled waits whose coroutines have not been notified.
///
/// Thread safety: all members may be called from any thread.
class awaitable_adapter::waits
{
public:
    struct wait
    {
        explicit wait(asio::any_io_executor executor) : strand(asio::make_strand(std::move(executor))) {}

        const asio::strand<asio::any_io_executor> strand;
        /// Used on the strand only.
        asio::cancellation_signal signal;
    };
    using wait_ptr = std::shared_ptr<wait>;

    void begin(const claim& claim, const wait_ptr& wait)
    {
        const std::lock_guard guard(mutex_);
        active_.insert_or_assign(&claim, wait);
    }
    /// Returns whether the end of the wait must still be reported.
    [[nodiscard]] bool end(const claim& claim, const wait_ptr& wait)
    {
        const std::lock_guard guard(mutex_);
        const auto found = active_.find(&claim);
        if (found == active_.end() || found->second.lock() != wait)
            return false;
        active_.erase(found);
        return true;
    }
    /// Cancels the wait of a claim. Its end is not reported any more.
    void cancel(const claim& claim) noexcept
    {
        {
            const std::lock_guard guard(mutex_);
            cancelled_.insert(active_.extract(&claim));
        }
        notify_cancelled();
    }
    /// Notifies the coroutines of cancelled waits. If there is no memory to notify a coroutine, it is notified at the
    /// next call.
    void notify_cancelled() noexcept
    {
        for (;;) {
            auto next = take_cancelled();
            if (!next)
                return;
            if (notify(next.mapped().lock()))
                continue;
            const std::lock_guard guard(mutex_);
            cancelled_.insert(std::move(next));
            return;
        }
    }

private:
    /// Weak references: only its coroutine keeps a wait alive, because the strand of a wait must not outlive the
    /// context. A node can move between the maps without an allocation.
    using map = std::map<const claim*, std::weak_ptr<wait>>;
    using multimap = std::multimap<const claim*, std::weak_ptr<wait>>;

    [[nodiscard]] multimap::node_type take_cancelled() noexcept
    {
        const std::lock_guard guard(mutex_);
        return cancelled_.empty() ? multimap::node_type() : cancelled_.extract(cancelled_.begin());
    }
    [[nodiscard]] static bool notify(const wait_ptr& cancelled) noexcept
    {
        try {
            // A post to a strand that throws bad_alloc leaves the strand locked. So the post that may fail goes to the
            // executor below.
            if (cancelled) {
                asio::post(cancelled->strand.get_inner_executor(), [cancelled] {
                    asio::dispatch(
                        cancelled->strand, [cancelled] { cancelled->signal.emit(asio::cancellation_type::terminal); });
                });
            }
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    std::mutex mutex_;
    map active_;
    /// Cancelled waits whose coroutines have not been notified.
    multimap cancelled_;
};

awaitable_adapter::awaitable_adapter(asio::any_io_executor executor)
    : adapter(std::move(executor)), waits_(std::make_unique<waits>())
{
    static_cast<void>(no_memory_failure());
}

awaitable_adapter::~awaitable_adapter() = default;

void awaitable_adapter::start_create(claim_ptr claim, completion<create_outcome> done)
{
    spawn(*this, do_create(std::move(claim)), std::move(done), &create_outcome::failed);
}

void awaitable_adapter::start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done)
{
    spawn(*this, do_release(std::move(claim), guarantee), std::move(done), &release_failed);
}

void awaitable_adapter::start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    spawn(*this, do_extend(std::move(claim), ttl), std::move(done),
        [](failure_ptr error) { return extend_outcome{extend_status::failed, std::move(error)}; });
}

void awaitable_adapter::start_is_valid(claim_ptr claim, completion<valid_outcome> done)
{
    spawn(*this, do_is_valid(std::move(claim)), std::move(done),
        [](failure_ptr error) { return valid_outcome{false, std::move(error)}; });
}

void awaitable_adapter::start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done)
{
    const auto executor = this->executor();
    if (!executor)
        return;
    waits_->notify_cancelled();
    const auto wait = std::make_shared<waits::wait>(executor);
    const auto& waiter = *claim;
    waits_->begin(waiter, wait);
    // An exception that ends the wait is ignored: the woken waiter sends a request, and gets the error from that.
    asio::co_spawn(wait->strand, do_wait(std::move(claim), until),
        asio::bind_cancellation_slot(
            wait->signal.slot(), [this, self = shared_from_this(), wait, &waiter, done = std::move(done)](
                                     const std::exception_ptr&) mutable {
                if (waits_->end(waiter, wait))
                    done(wait_outcome{});
            }));
}

void awaitable_adapter::cancel_wait(claim& claim) noexcept
{
    waits_->cancel(claim);
}

void awaitable_adapter::start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
{
    spawn(*this, do_hand_over(std::move(held), std::move(next)), std::move(done), [](const failure_ptr& error) {
        return hand_over_outcome{release_failed(error), create_outcome::failed(error)};
    });
}

void awaitable_adapter::start_listing(listing_request request, completion<list_outcome> done)
{
    spawn(*this, do_listing(std::move(request)), std::move(done), &list_failed);
}

void awaitable_adapter::start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done)
{
    spawn(*this, do_create_all(std::move(claims)), std::move(done), &create_all_failed);
}

void awaitable_adapter::start_group(
    std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done)
{
    spawn(*this, do_group(std::move(id), action, ttl), std::move(done),
        [](failure_ptr error) { return group_outcome{.error = std::move(error)}; });
}

void awaitable_adapter::start_export(claim_ptr held, completion<export_outcome> done)
{
    spawn(*this, do_export(std::move(held)), std::move(done),
        [](failure_ptr error) { return export_outcome{{}, std::move(error)}; });
}

void awaitable_adapter::start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done)
{
    spawn(*this, do_adopt(std::move(ticket), std::move(claim)), std::move(done), &create_outcome::failed);
}

void awaitable_adapter::start_close(lease_clock::duration deadline, completion<close_outcome> done)
{
    const auto executor = this->executor();
    if (!executor)
        return;
    waits_->notify_cancelled();
    asio::co_spawn(executor, do_close(deadline),
        [self = shared_from_this(), done = std::move(done)](
            const std::exception_ptr&) mutable { done(close_outcome{}); });
}

asio::awaitable<void> awaitable_adapter::do_wait(claim_ptr, lease_clock::time_point until)
{
    lease_timer timer(co_await asio::this_coro::executor, until);
    co_await timer.async_wait(asio::deferred);
}

asio::awaitable<hand_over_outcome> awaitable_adapter::do_hand_over(claim_ptr held, claim_ptr next)
{
    hand_over_outcome outcome;
    try {
        outcome.released = co_await do_release(held, detail::needed_guarantee(*held));
    } catch (...) {
        outcome.released = release_failed(failure_of(std::current_exception()));
    }
    try {
        outcome.created = co_await do_create(next);
    } catch (...) {
        outcome.created = create_outcome::failed(failure_of(std::current_exception()));
    }
    co_return outcome;
}

asio::awaitable<list_outcome> awaitable_adapter::do_listing(listing_request)
{
    co_return detail::cannot_list(traits().name);
}

asio::awaitable<create_all_outcome> awaitable_adapter::do_create_all(std::vector<claim_ptr>)
{
    co_return create_all_failed(detail::cannot(traits().name, "take several locks in one step"));
}

asio::awaitable<group_outcome> awaitable_adapter::do_group(std::string, group_action, std::chrono::milliseconds)
{
    co_return group_outcome{.error = detail::cannot(traits().name, "access a group of locks by its id")};
}

asio::awaitable<export_outcome> awaitable_adapter::do_export(claim_ptr)
{
    co_return export_outcome{{}, detail::cannot(traits().name, "move locks to another process")};
}

asio::awaitable<create_outcome> awaitable_adapter::do_adopt(std::string, claim_ptr)
{
    co_return create_outcome::failed(detail::cannot(traits().name, "take over a lock from another process"));
}

asio::awaitable<void> awaitable_adapter::do_close(lease_clock::duration)
{
    co_return;
}

} // namespace colock::inline v0
