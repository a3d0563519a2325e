// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/wrapped_handler.hpp>
#include <colock/error.hpp>

#include "util/context_service.hpp"
#include "util/strand.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/execution/bad_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

/// Calls `use`, which uses the associated executors of a type-erased handler. Without memory, such a handler returns
/// empty executors.
template <class Use>
void throw_bad_alloc_for_bad_executor(Use use)
{
    try {
        use();
    } catch (const asio::execution::bad_executor&) {
        throw std::bad_alloc();
    }
}

/// The completion handler of the coroutine of an `async_` function. Calls the caller's handler, on that handler's
/// executor and with its allocator.
///
/// The cancellation slot is not the caller's. The function that co_spawn stores in a slot refers to the coroutine's
/// strand. A strand must not outlive its context, but the caller's signal may. Therefore the slot belongs to a signal
/// of this object, and the caller's slot holds a weak reference to that signal.
template <class Handler>
class relayed
{
public:
    using cancellation_slot_type = asio::cancellation_slot;
    using wrapped_handler_type = wrapped_handler<Handler>;

    /// All cancellation types mean the same to an operation, but a coroutine under co_spawn accepts `terminal` only.
    /// Therefore every type is forwarded as `terminal`. This is cheaper than an outer coroutine that changes the
    /// filter.
    explicit relayed(Handler wrapped) : handler(std::move(wrapped))
    {
        auto outer = asio::get_associated_cancellation_slot(handler);
        if (!outer.is_connected())
            return;
        inner_ = std::make_shared<asio::cancellation_signal>();
        outer.assign([weak = std::weak_ptr(inner_)](asio::cancellation_type type) {
            if (const auto inner = weak.lock(); inner && type != asio::cancellation_type::none)
                inner->emit(asio::cancellation_type::terminal);
        });
    }

    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept
    {
        return inner_ ? inner_->slot() : cancellation_slot_type();
    }

    template <class... Results>
    void operator()(Results... results)
    {
        std::move(handler)(std::move(results)...);
    }

    Handler handler;

private:
    std::shared_ptr<asio::cancellation_signal> inner_;
};

/// The handler of a caller whose executor belongs to another context than the coroutine. Either context may shut down
/// first. If the caller's context does, the handler is destroyed and the operation is cancelled. If the coroutine's
/// context does, the handler is invoked with `shutting_down`.
///
/// Thread safety: all members may be called from any thread.
template <class Handler, class T>
class foreign_handler final : public pending_handler
{
public:
    using ptr = boost::intrusive_ptr<foreign_handler>;

    /// Cancels the coroutine on its strand. Only the coroutine's completion keeps this object alive, because a strand
    /// must not outlive its context.
    struct canceller
    {
        asio::any_io_executor strand;
        asio::cancellation_signal signal;
    };

    foreign_handler(const asio::any_io_executor& executor, Handler handler)
        : executor_(asio::prefer(executor, asio::execution::outstanding_work.tracked)), handler_(std::move(handler))
    {
    }

    /// \param operation_registry the registry of the coroutine's context
    void cancel_with(std::weak_ptr<canceller> by, std::shared_ptr<handler_registry> operation_registry)
    {
        canceller_ = std::move(by);
        operation_registry_ = std::move(operation_registry);
        if (auto slot = asio::get_associated_cancellation_slot(*handler_); slot.is_connected()) {
            slot.assign([self = ptr(this)](asio::cancellation_type type) {
                if (type != asio::cancellation_type::none)
                    self->cancel();
            });
        }
    }
    /// From now on the handler is invoked even if the coroutine is destroyed.
    void has_started() noexcept { started_ = true; }

    template <class... Results>
    void end(std::exception_ptr failure, Results... results)
    {
        auto finish = [failure = std::move(failure), all = std::tuple<Results...>(std::move(results)...)](
                          Handler handler) mutable {
            std::apply([&](Results&... each) { std::move(handler)(std::move(failure), std::move(each)...); }, all);
        };
        std::optional<Handler> called_here;
        complete([&] {
            const auto executor = std::exchange(executor_, nullptr);
            called_here.swap(handler_);
            // A system executor runs a dispatched function at once. A post would start the threads of its context.
            if (is_system(executor))
                return;
            auto allocator = asio::get_associated_allocator(*called_here);
            asio::post(executor, asio::bind_allocator(allocator,
                                     [handler = std::move(*called_here), finish = std::move(finish)]() mutable {
                                         finish(std::move(handler));
                                     }));
            called_here.reset();
        });
        if (called_here)
            finish(std::move(*called_here));
    }
    /// Called when the coroutine was destroyed before it ended.
    void drop() noexcept
    {
        try {
            if (!started_)
                return discard();
            auto why = std::make_exception_ptr(create_error(errc::shutting_down, {}));
            if constexpr (std::is_void_v<T>)
                end(std::move(why));
            else
                end(std::move(why), T());
        } catch (...) {
            // Without memory the caller cannot be notified.
            discard();
        }
    }

private:
    void cancel()
    {
        operation_registry_->if_open([this] {
            if (const auto alive = canceller_.lock())
                asio::post(alive->strand, [alive] { alive->signal.emit(asio::cancellation_type::terminal); });
        });
    }
    void discard() noexcept
    {
        // Destroyed without the registry's mutex, because the handler may own anything.
        std::optional<Handler> discarded;
        asio::any_io_executor executor;
        complete([&] {
            discarded.swap(handler_);
            executor = std::exchange(executor_, nullptr);
        });
    }
    void abandon() noexcept override
    {
        handler_.reset();
        executor_ = nullptr;
        try {
            if (operation_registry_)
                cancel();
        } catch (...) {
            // The operation continues, and its result is dropped.
        }
    }

    asio::any_io_executor executor_;
    std::optional<Handler> handler_;
    std::weak_ptr<canceller> canceller_;
    std::shared_ptr<handler_registry> operation_registry_;
    std::atomic<bool> started_{false};
};

/// The completion of a coroutine whose caller belongs to another context.
template <class Target>
class foreign_completion
{
public:
    using cancellation_slot_type = asio::cancellation_slot;

    foreign_completion(typename Target::ptr target, std::shared_ptr<typename Target::canceller> by)
        : target_(std::move(target)), canceller_(std::move(by))
    {
    }
    foreign_completion(foreign_completion&&) noexcept = default;
    foreign_completion& operator=(foreign_completion&&) = delete;
    ~foreign_completion()
    {
        if (target_)
            target_->drop();
    }

    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return canceller_->signal.slot(); }

    template <class... Results>
    void operator()(Results... results)
    {
        const auto target = std::exchange(target_, nullptr);
        target->end(std::move(results)...);
    }

private:
    typename Target::ptr target_;
    std::shared_ptr<typename Target::canceller> canceller_;
};

/// Starts an operation in the locker's context for a handler of another context. `start` is called with a strand of
/// `executor` and the completion. `executor` is empty if the locker's context is gone.
/// \param caller the handler's executor; the type-erased handler does not provide its context
template <class T, class Handler, class Start>
void start_foreign(
    const asio::any_io_executor& executor, Handler handler, const asio::any_io_executor& caller, Start start)
{
    using handler_type = foreign_handler<Handler, T>;
    const typename handler_type::ptr target(new handler_type(caller, std::move(handler)));
    if (!target->enroll(handler_registry::of(caller)))
        return;
    if (!executor) {
        target->has_started();
        return target->drop();
    }
    const auto canceller = std::make_shared<typename handler_type::canceller>(new_strand(executor));
    target->cancel_with(canceller, handler_registry::of(executor));
    start(canceller->strand, foreign_completion<handler_type>(target, canceller));
    target->has_started();
}

/// Runs `coroutine` on a strand of `executor`, which is empty if its context is gone, and invokes `handler` on the
/// handler's executor.
/// \param caller the handler's executor, whose context the type-erased handler does not provide; empty if the handler
///   has none
template <class T, class Handler>
void spawn_operation(const asio::any_io_executor& executor, asio::awaitable<T> coroutine, Handler handler,
    const asio::any_io_executor& caller)
{
    if (!caller || (executor && &context_of(caller) == &context_of(executor))) {
        // If the context is gone, the handler is gone with it.
        if (!executor)
            return;
        throw_bad_alloc_for_bad_executor(
            [&] { asio::co_spawn(new_strand(executor), std::move(coroutine), relayed<Handler>(std::move(handler))); });
        return;
    }
    start_foreign<T>(executor, std::move(handler), caller, [&](const auto& strand, auto done) {
        // The executor is bound, so that a cancellation is emitted on the strand.
        asio::co_spawn(strand, std::move(coroutine), asio::bind_executor(strand, std::move(done)));
    });
}

} // namespace colock::inline v0::detail
