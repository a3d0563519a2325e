// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/error.hpp>

#include "util/context_service.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/system/system_error.hpp>

#include <cstdint>
#include <new>
#include <optional>
#include <utility>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::detail {

class core;
struct suspended_tag;
using auto_unlink = boost::intrusive::link_mode<boost::intrusive::auto_unlink>;

/// Resumes a coroutine, or an operation of a completion handler, that is suspended until something changes. Does not
/// live in the coroutine's frame, because the cancellation slot, or a thread that is about to resume the coroutine, may
/// refer to the waiter after the frame is gone.
///
/// The core's lists own a reference to each waiter in them. Thread safety: the core's mutex guards the lists.
class waiter : public pending_handler,
               public boost::intrusive::list_base_hook<auto_unlink>,
               public boost::intrusive::list_base_hook<boost::intrusive::tag<suspended_tag>, auto_unlink>
{
public:
    using ptr = boost::intrusive_ptr<waiter>;
    using source_hook = boost::intrusive::list_base_hook<auto_unlink>;
    using suspended_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<suspended_tag>, auto_unlink>;

    // The core's mutex is held.
    [[nodiscard]] bool is_waiting() const noexcept { return source_hook::is_linked(); }
    /// Takes it out of the lists, which it must be in.
    [[nodiscard]] ptr take_out() noexcept
    {
        source_hook::unlink();
        suspended_hook::unlink();
        return {this, false};
    }

    /// Posts the continuation to the executor of whoever waits; does nothing if its context has shut down. Not under
    /// the core's mutex.
    /// \throws std::bad_alloc; then it may be resumed again
    void resume(error_code why);
    /// Destroys the continuation, unless it has been posted already.
    virtual void discard() noexcept = 0;

    /// The wait was cancelled: it ends instead of being suspended again. Guarded by the core's mutex.
    bool is_cancelled = false;

protected:
    explicit waiter(core& owner) : owner_(owner) {}

    /// Takes it out of the core's lists.
    void forget() noexcept;

private:
    /// Is destroyed without a call when the context is, or when there is no memory to post it.
    class continuation;

    [[nodiscard]] virtual asio::any_io_executor executor() const = 0;
    /// On that executor.
    virtual void go_on(error_code why) = 0;
    /// It was posted, and the context is destroyed.
    virtual void drop() noexcept = 0;

    /// The coroutine's frame, or the operation, keeps it.
    core& owner_;
    /// Guarded by the registry's mutex.
    bool is_posted_ = false;
};

/// A waiter with its handler. The handler is not type-erased, and its executor is not copied, because there may be ten
/// thousand waiters.
template <class Handler>
class waiter_with final : public waiter
{
public:
    waiter_with(core& owner, Handler&& handler) : waiter(owner), handler_(std::move(handler)) {}

    void discard() noexcept override
    {
        // Destroyed without the registry's mutex, because the handler may own anything.
        std::optional<Handler> discarded;
        complete([&] {
            discarded.emplace(std::move(*handler_));
            handler_.reset();
        });
    }

private:
    [[nodiscard]] asio::any_io_executor executor() const override { return asio::get_associated_executor(*handler_); }
    void go_on(error_code why) override
    {
        Handler handler = *std::move(handler_);
        handler_.reset();
        // The slot outlives the wait.
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            slot.clear();
        std::move(handler)(why);
    }
    void drop() noexcept override { handler_.reset(); }
    void abandon() noexcept override
    {
        forget();
        // Destroys the coroutine's frame, or posts that to its context, and with it what keeps the core.
        handler_.reset();
    }

    std::optional<Handler> handler_;
};

/// Checks for a cancellation that came between two suspensions of a coroutine, and was only recorded in `state`.
/// \throws boost::system::system_error `operation_aborted`
inline void throw_if_cancelled(const asio::cancellation_state& state)
{
    if (state.cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
}

/// How a coroutine is suspended, and where.
struct wait_state
{
    /// Not to be parked any longer, once its core takes no new acquires.
    bool ends_when_closed = false;
    /// A wait has ended because the context of the adapter has shut down. Each coroutine is resumed once after that,
    /// because it may have looked at the state just before.
    bool saw_shutdown = false;
    /// The latest wait, for core::discard.
    waiter::ptr wait{};
};

/// All that are suspended in one core, whatever they wait for.
using waiter_list = boost::intrusive::list<waiter, boost::intrusive::base_hook<waiter::suspended_hook>,
    boost::intrusive::constant_time_size<false>>;

/// Coroutines that were taken out under the shard's mutex and are resumed after it is free again.
class wake_list
{
public:
    void add(waiter& next, error_code why = {})
    {
        if (next.is_cancelled)
            why = asio::error::operation_aborted;
        woken_.push_back({next.take_out(), why});
    }
    /// Posts each to its coroutine's executor.
    /// \param failed called with each for which there was no memory
    template <class Failed>
    void resume(Failed failed)
    {
        for (auto& each : woken_) {
            try {
                each.who->resume(each.why);
            } catch (const std::bad_alloc&) {
                failed(*each.who);
            }
        }
        woken_.clear();
    }
    [[nodiscard]] bool empty() const noexcept { return woken_.empty(); }

private:
    struct woken
    {
        waiter::ptr who;
        error_code why;
    };
    boost::container::small_vector<woken, 2> woken_;
};

struct timer_tag;

/// Something that coroutines wait on, and that can be told of a point in time. All of it is guarded by the core's
/// mutex.
///
/// Waiting works as with a condition variable: a coroutine reads `version`, looks at the state, and parks unless the
/// version has moved since; every change moves the version and wakes all.
class condition
    : public boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>
{
public:
    using time_point = lease_clock::time_point;

    /// A version that never is: who parks with it is resumed at once, by a post.
    static constexpr std::uint32_t outdated = 0xffffffff;

    boost::intrusive::list<waiter, boost::intrusive::base_hook<waiter::source_hook>,
        boost::intrusive::constant_time_size<false>>
        waiters;
    std::uint32_t version = 0;
    /// When it is due, those who wait for it are woken, and that is all.
    const bool only_wakes = false;
    /// When the timer heap tells it; max: not in the heap.
    time_point due = time_point::max();

    void touch() noexcept { version = (version + 1) & 0x7fffffff; }
    void notify(wake_list& wakes)
    {
        touch();
        while (!waiters.empty())
            wakes.add(waiters.front());
    }

    friend bool operator<(const condition& left, const condition& right) noexcept { return left.due < right.due; }

protected:
    condition() = default;
    explicit condition(bool wakes_only) : only_wakes(wakes_only) {}
    ~condition() = default;
};

/// Something that coroutines wait on and that has no other meaning.
struct plain_condition : condition
{
    plain_condition() : condition(true) {}
};

} // namespace colock::detail
