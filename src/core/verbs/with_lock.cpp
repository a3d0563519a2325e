// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/body.hpp>

#include "core/core.hpp"
#include "core/failures.hpp"
#include "core/letting_go.hpp"
#include "core/relay.hpp"
#include "core/strand.hpp"
#include "core/verbs.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>

namespace colock::detail {

namespace {

/// Why it may not begin at all, if the lease has ended already.
std::optional<lost_reason> body_begins(core& self, record& held)
{
    work todo;
    std::optional<lost_reason> lost;
    {
        const std::lock_guard guard(self.mutex);
        lost = self.leased.report_loss(held, todo);
        if (held.where() == phase::held) {
            held.plan.body_begins();
            self.leased.reschedule(held);
        }
    }
    todo.run(self);
    return lost;
}

/// Why the result of the body cannot stand; nothing if the lease stood until now, or the body itself ended it.
std::optional<lost_reason> body_ends(core& self, record& held)
{
    work todo;
    std::optional<lost_reason> lost;
    {
        const std::lock_guard guard(self.mutex);
        held.plan.body_ends();
        lost = self.leased.report_loss(held, todo);
    }
    todo.run(self);
    return lost == lost_reason::released ? std::nullopt : lost;
}

/// Completes when the body of `held` has to stop.
asio::awaitable<void> supervise(std::shared_ptr<core> self, record::ptr held)
{
    // Cancelled as soon as the body ends, which is the rule: exceptions for that would cost more than all else.
    co_await asio::this_coro::throw_if_cancelled(false);
    // The group that it runs in emits one cancellation only: whatever its type, it must not be missed.
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    parked place;
    while ((co_await asio::this_coro::cancellation_state).cancelled() == asio::cancellation_type::none) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex);
            if (held->plan.body_stops() || (held->end_reason && *held->end_reason != lost_reason::released))
                co_return;
            seen = held->version;
        }
        co_await self->park(*held, place, seen, asio::as_tuple(asio::deferred));
    }
}

/// Gives the lock back when the frame dies, even if the body has moved the handle away.
struct released_at_end
{
    std::shared_ptr<core> self;
    record::ptr held;
    ~released_at_end() { let_go(*self, *held); }
};

asio::awaitable<void> run_body(body_ref body, lock& held)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await body.run(body.object, held);
}

/// Body and supervisor, launched where they run: a group that is launched on another thread could end, and its caller
/// go on, before it is set up.
asio::awaitable<std::exception_ptr> run_supervised(
    std::shared_ptr<core> self, record::ptr wanted, body_ref body, lock& held)
{
    const auto strand = co_await asio::this_coro::executor;
    // The supervisor first: one that is cancelled before it has begun costs an exception.
    auto [order, unused, failure] = co_await asio::experimental::make_parallel_group(
        asio::co_spawn(strand, supervise(self, wanted), asio::deferred),
        asio::co_spawn(strand, run_body(body, held), asio::deferred))
                                        .async_wait(asio::experimental::wait_for_one(), asio::deferred);
    co_return failure;
}

/// Makes terminal of every type of cancellation: the one that a coroutine cannot miss before it has begun. Null if
/// nothing can cancel. The slot knows it weakly: it may outlive the frame that keeps it.
std::shared_ptr<asio::cancellation_signal> as_terminal(asio::cancellation_slot from)
{
    if (!from.is_connected())
        return nullptr;
    auto to = std::make_shared<asio::cancellation_signal>();
    from.assign([weak = std::weak_ptr(to)](asio::cancellation_type type) {
        if (const auto signal = weak.lock(); signal && type != asio::cancellation_type::none)
            signal->emit(asio::cancellation_type::terminal);
    });
    return to;
}

/// Ends early when the caller is cancelled: the release goes on in the background.
asio::awaitable<void> release_after_body(std::shared_ptr<core> self, record::ptr held)
{
    parked place;
    std::uint32_t seen = 0;
    for (bool waits = begin_release(*self, *held, &seen); waits; waits = must_await_answer(*self, *held, seen)) {
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            co_return;
        co_await self->park(*held, place, seen, asio::as_tuple(asio::deferred));
    }
}

[[noreturn]] void throw_lost(const core& self, const record& held, lost_reason reason, std::exception_ptr failure)
{
    auto context = context_of(self, held);
    context.detail = std::string("the lease ended before the body did: ") + to_string(reason);
    lost_error lost(errc::lost, std::move(context));
    if (!failure)
        throw lost;
    try {
        std::rethrow_exception(std::move(failure));
    } catch (...) {
        std::throw_with_nested(std::move(lost));
    }
}

} // namespace

asio::awaitable<void> run_with_lock(std::shared_ptr<core> self, std::string key, acquire_options options, body_ref body)
{
    auto wanted = verbs::prepare(self, std::move(key), std::move(options), renewal::automatic, true);
    lock held = co_await verbs::acquire(self, wanted);
    const released_at_end end{self, wanted};

    // Body and supervisor take turns on one strand: a cancellation is emitted where its receiver runs.
    const asio::any_io_executor strand = new_strand(co_await asio::this_coro::executor);
    if (const auto lost = body_begins(*self, *wanted))
        throw_lost(*self, *wanted, *lost, nullptr);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    // One that came between two awaits is only recorded, and would never reach the body.
    if (cancellation.cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    const auto cancel = as_terminal(cancellation.slot());
    const auto slot = cancel ? cancel->slot() : asio::cancellation_slot();
    auto failure = co_await asio::co_spawn(
        strand, run_supervised(self, wanted, body, held), asio::bind_cancellation_slot(slot, asio::deferred));
    const auto lost = body_ends(*self, *wanted);

    // Given back already, or about to be, in the background: behind a dead link that can take long, and the caller
    // should know at once.
    if (lost)
        throw_lost(*self, *wanted, *lost, std::move(failure));

    // What the body has done stands, even if the caller was cancelled meanwhile: then the release is begun when this
    // frame ends.
    if ((co_await asio::this_coro::cancellation_state).cancelled() == asio::cancellation_type::none)
        co_await release_after_body(self, wanted);

    if (failure)
        std::rethrow_exception(std::move(failure));
}

namespace {

struct finish_body
{
    template <class Handler>
    void operator()(Handler handler, std::exception_ptr exception) const
    {
        std::move(handler)(std::move(exception));
    }
};

} // namespace

void run_with_lock_front(const asio::any_io_executor& executor, asio::awaitable<void> verb,
    asio::any_completion_handler<void(std::exception_ptr)> handler)
{
    if (!executor)
        return;
    asio::co_spawn(new_strand(executor), std::move(verb),
        relayed<asio::any_completion_handler<void(std::exception_ptr)>, finish_body>(std::move(handler)));
}

} // namespace colock::detail
