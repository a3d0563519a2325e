// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/spi/adapter.hpp>

#include <colock/detail/context_gate.hpp>
#include <colock/spi/context_member.hpp>

#include "core/spi/release_then_create.hpp"
#include "util/await_completion.hpp"
#include "util/cursor.hpp"
#include "util/option_errors.hpp"
#include "util/unsupported.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace colock::inline v0 {

failure_ptr make_failure(errc code, std::string detail, error_code cause)
{
    return std::make_shared<const failure>(failure{code, cause, std::move(detail)});
}

namespace {

asio::any_io_executor checked(asio::any_io_executor executor)
{
    if (!executor)
        detail::refuse_options({}, "the executor is empty; pass one, such as io_context::get_executor()");
    return executor;
}

} // namespace

/// Releases the executor of an adapter when the context shuts down, and notifies the adapter. A separate object,
/// because a constructor cannot provide a weak pointer to the adapter.
class adapter::shared_executor final : public context_member
{
public:
    shared_executor(adapter& owner, asio::any_io_executor executor) : owner_(&owner), executor_(std::move(executor)) {}

    /// Returns the executor; empty after the context has shut down.
    [[nodiscard]] asio::any_io_executor get() const
    {
        const std::lock_guard guard(mutex_);
        return executor_;
    }
    /// Registers this object with the context, which must not have shut down.
    static void register_with_context(const std::shared_ptr<shared_executor>& cell)
    {
        join_context(cell->executor_, cell);
        cell->gate_ = detail::context_gate::of(cell->executor_);
    }
    /// Destroys the executor. The executor may be a strand, which must not be destroyed after its context. If another
    /// thread destroys the context meanwhile, the gate delays that thread. A closed gate means that the context has
    /// destroyed the executor already.
    void release() noexcept
    {
        {
            const std::lock_guard guard(mutex_);
            owner_ = nullptr;
        }
        gate_->if_open([this] {
            // Destroyed without the mutex.
            asio::any_io_executor unused;
            const std::lock_guard guard(mutex_);
            unused.swap(executor_);
        });
    }
    void context_shutdown() noexcept override
    {
        asio::any_io_executor last;
        std::shared_ptr<adapter> owner;
        {
            const std::lock_guard guard(mutex_);
            last.swap(executor_);
            // Null if another thread destroys the adapter: its destructor then waits for the mutex.
            if (owner_)
                owner = owner_->weak_from_this().lock();
        }
        if (owner)
            owner->context_shutdown();
    }

private:
    mutable std::mutex mutex_;
    adapter* owner_;
    asio::any_io_executor executor_;
    std::shared_ptr<detail::context_gate> gate_;
};

adapter::adapter(asio::any_io_executor executor)
    : executor_(std::make_shared<shared_executor>(*this, checked(std::move(executor)))), contact_(*this)
{
    shared_executor::register_with_context(executor_);
}

adapter::~adapter()
{
    executor_->release();
}

asio::any_io_executor adapter::executor() const
{
    return executor_->get();
}

void adapter::start_wait(claim_ptr, lease_clock::time_point, completion<wait_outcome>) {}

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
    auto failure = detail::cannot(traits().name, "take several locks in one step");
    done({.status = create_status::failed, .refusal = create_outcome::failed(std::move(failure))});
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

void adapter::start_close(lease_clock::duration, completion<close_outcome> done)
{
    done(close_outcome{});
}

void adapter::attach(const std::shared_ptr<observer>& listener)
{
    contact_.attach(listener);
}

void adapter::warn_of_refusal(const failure& failure) noexcept
{
    contact_.warn_of_refusal(failure);
}

void adapter::watch_contact(const std::shared_ptr<contact_watcher>& watcher)
{
    contact_.watch(watcher);
}

void adapter::add_user() noexcept
{
    if (users_.fetch_add(1, std::memory_order_acq_rel) == 0)
        cancel_close();
}

bool adapter::remove_user() noexcept
{
    return users_.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

bool adapter::has_users() const noexcept
{
    return users_.load(std::memory_order_acquire) != 0;
}

std::uint64_t adapter::reconnects() const noexcept
{
    return contact_.reconnects();
}

lease_clock::time_point adapter::connected_at() const noexcept
{
    return contact_.connected_at();
}

std::uint64_t adapter::unproven() const noexcept
{
    return unproven_.load(std::memory_order_relaxed);
}

void adapter::count_unproven(std::uint64_t parts) noexcept
{
    unproven_.fetch_add(parts, std::memory_order_relaxed);
}

std::chrono::milliseconds adapter::max_clock_lead(std::chrono::milliseconds) const noexcept
{
    return std::chrono::milliseconds(0);
}

failure_ptr adapter::connection_failure() const
{
    return contact_.connection_failure();
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

asio::awaitable<wait_outcome> adapter::wait(claim_ptr claim, lease_clock::time_point until)
{
    return await_operation<wait_outcome>(shared_from_this(), &adapter::start_wait, std::move(claim), until);
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

asio::awaitable<close_outcome> adapter::close(lease_clock::duration deadline)
{
    return await_operation<close_outcome>(shared_from_this(), &adapter::start_close, deadline);
}

} // namespace colock::inline v0
