// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/body.hpp>

#include "core/core.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

namespace colock::detail {

namespace {

/// Gives the lock back when the frame dies, even if the body has moved the handle away.
struct released_at_end
{
    std::shared_ptr<core> self;
    core::record_ptr held;
    ~released_at_end() { self->let_go(*held); }
};

asio::awaitable<void> run_body(body_ref body, lock& held)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await body.run(body.object, held);
}

[[noreturn]] void throw_lost(const core& self, const record& held, lost_reason reason, std::exception_ptr failure)
{
    auto context = self.context_of(held);
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
    auto wanted = core::prepare(self, std::move(key), std::move(options), renewal::automatic, true);
    lock held = co_await core::acquire(self, wanted);
    const released_at_end end{self, wanted};

    // Body and supervisor take turns on one strand: a cancellation is emitted where its receiver runs.
    const asio::any_io_executor strand = asio::make_strand(co_await asio::this_coro::executor);
    self->body_begins(*wanted);
    // The supervisor first: one that is cancelled before it has begun costs an exception.
    auto [order, unused, failure] = co_await asio::experimental::make_parallel_group(
        asio::co_spawn(strand, core::supervise(self, wanted), asio::deferred),
        asio::co_spawn(strand, run_body(body, held), asio::deferred))
                                        .async_wait(asio::experimental::wait_for_one(), asio::deferred);
    const auto lost = self->body_ends(*wanted);

    // What the body has done stands, even if the caller was cancelled meanwhile: the release is not.
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await core::release_uncancelled(self, wanted);
    co_await asio::this_coro::throw_if_cancelled(throws);

    if (lost)
        throw_lost(*self, *wanted, *lost, std::move(failure));
    if (failure)
        std::rethrow_exception(std::move(failure));
}

void run_with_lock_front(const asio::any_io_executor& executor, asio::awaitable<void> verb,
    asio::any_completion_handler<void(std::exception_ptr)> handler)
{
    if (!executor)
        return;
    asio::co_spawn(
        asio::any_io_executor(asio::make_strand(executor)),
        [](asio::awaitable<void> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            co_await std::move(inner);
        }(std::move(verb)),
        std::move(handler));
}

} // namespace colock::detail
