// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/detail/context_gate.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/error.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

class core;
struct suspended_tag;
using auto_unlink = boost::intrusive::link_mode<boost::intrusive::auto_unlink>;

/// Resumes a coroutine, or another handler, that is suspended until something changes. Does not live in the coroutine's
/// frame, because the cancellation slot, or a thread that is about to resume the coroutine, may refer to the waiter
/// after the frame is gone.
///
/// Reference-counted: the core's lists own a reference to each waiter in them. Thread safety: the mutex of the core
/// guards the lists.
class waiter : public boost::intrusive::list_base_hook<auto_unlink>,
               public boost::intrusive::list_base_hook<boost::intrusive::tag<suspended_tag>, auto_unlink>
{
public:
    using ptr = boost::intrusive_ptr<waiter>;
    using source_hook = boost::intrusive::list_base_hook<auto_unlink>;
    using suspended_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<suspended_tag>, auto_unlink>;

    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    /// Whether the waiter is suspended. The mutex of the core must be held.
    [[nodiscard]] bool is_waiting() const noexcept { return source_hook::is_linked(); }
    /// Removes the waiter from the lists. Requires `is_waiting()`.
    [[nodiscard]] ptr remove() noexcept
    {
        source_hook::unlink();
        suspended_hook::unlink();
        return {this, false};
    }

    /// Posts the handler to its executor. The mutex of the core must not be held.
    /// \throws std::bad_alloc The waiter may then be resumed again.
    void resume(error_code error);

    /// Whether a cancellation has arrived. Guarded by the mutex of the core.
    bool is_cancelled = false;
    /// The value of `is_cancelled` at the wake-up: the wait ends with `operation_aborted`. Belongs to the wake list
    /// that contains the waiter.
    bool is_woken_by_cancellation = false;

    friend void intrusive_ptr_add_ref(const waiter* counted) noexcept { counted->references_.add(); }
    friend void intrusive_ptr_release(const waiter* counted) noexcept
    {
        if (counted->references_.remove())
            delete counted;
    }

protected:
    explicit waiter(core& owner) : owner_(owner) {}
    virtual ~waiter() = default;

    /// Removes the waiter from the core's lists, so that it is not resumed any more. Returns false if it is not in
    /// them, because it is being resumed or was not suspended.
    bool forget() noexcept;

private:
    friend class wake_list;
    /// The function object that is posted to invoke the handler. It is destroyed without being invoked if its context
    /// is destroyed, or if there is no memory to post it.
    class continuation;

    [[nodiscard]] virtual asio::any_io_executor executor() const = 0;
    /// Invokes the handler. Called on its executor.
    virtual void invoke_handler(error_code error) = 0;
    /// Destroys the handler, which was posted to a context that is being destroyed.
    virtual void drop() noexcept = 0;

    /// The coroutine's frame keeps the core alive.
    core& owner_;
    mutable reference_count references_;
    /// Whether the continuation has been posted.
    std::atomic<bool> is_posted_{false};
};

/// A waiter with its handler. The handler is not type-erased, and its executor is not copied, because there may be ten
/// thousand waiters.
template <class Handler>
class handler_waiter final : public waiter
{
public:
    handler_waiter(core& owner, Handler&& handler) : waiter(owner), handler_(std::move(handler)) {}

private:
    [[nodiscard]] asio::any_io_executor executor() const override { return asio::get_associated_executor(*handler_); }
    void invoke_handler(error_code error) override
    {
        Handler handler = *std::move(handler_);
        handler_.reset();
        // The cancellation slot outlives the wait.
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            slot.clear();
        std::move(handler)(error);
    }
    void drop() noexcept override { handler_.reset(); }

    std::optional<Handler> handler_;
};

/// Whether a wait ends when its core accepts no new acquires.
enum class on_close : bool
{
    keep_waiting,
    end_wait,
};

/// Checks for a cancellation that arrived between two suspensions of a coroutine and was only recorded in `state`.
/// \throws boost::system::system_error `operation_aborted`
inline void throw_if_cancelled(const asio::cancellation_state& state)
{
    if (state.cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
}

/// Waiters of one core, whatever they wait for.
using waiter_list = boost::intrusive::list<waiter, boost::intrusive::base_hook<waiter::suspended_hook>,
    boost::intrusive::constant_time_size<false>>;

/// Waiters that were removed from the lists under the mutex of the core, and are resumed after the mutex is released.
/// Keeps the core's context from being destroyed meanwhile.
class wake_list
{
public:
    wake_list() = default;
    wake_list(const wake_list&) = delete;
    wake_list& operator=(const wake_list&) = delete;
    ~wake_list()
    {
        while (!woken_.empty())
            take_front();
        leave();
    }

    /// Removes a waiter from the lists of the core, and adds it to this list. The mutex must be held.
    void add(waiter& next) noexcept;
    /// Posts the handler of each waiter to its executor.
    /// \param failed called for each waiter whose handler could not be posted, because there was no memory
    template <class Failed>
    void resume(Failed failed)
    {
        while (!woken_.empty()) {
            const waiter::ptr next = take_front();
            try {
                next->resume(next->is_woken_by_cancellation ? asio::error::operation_aborted : error_code());
            } catch (const std::bad_alloc&) {
                failed(*next);
            }
        }
        leave();
    }
    [[nodiscard]] bool empty() const noexcept { return woken_.empty(); }

private:
    waiter::ptr take_front() noexcept
    {
        waiter& next = woken_.front();
        woken_.pop_front();
        return {&next, false};
    }
    void leave() noexcept
    {
        if (const auto entered = std::exchange(gate_, nullptr))
            entered->leave();
    }

    /// Owns a reference to each waiter. The hook is free, because a woken waiter is in no other list.
    waiter_list woken_;
    /// The gate that was entered, if any.
    std::shared_ptr<context_gate> gate_;
};

struct timer_tag;

/// Something that coroutines wait on, with an optional due time. Guarded by the mutex of the core.
///
/// Works like a condition variable. A coroutine reads `version`, checks the state, and is suspended unless the version
/// has changed since. Every change increments the version and wakes all waiters.
class condition
    : public boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>
{
public:
    using time_point = lease_clock::time_point;

    condition() = default;

    /// A version that never occurs. A coroutine that waits with it is resumed at once, by a post.
    static constexpr std::uint32_t outdated = 0xffffffff;

    boost::intrusive::list<waiter, boost::intrusive::base_hook<waiter::source_hook>,
        boost::intrusive::constant_time_size<false>>
        waiters;
    std::uint32_t version = 0;
    /// Whether the due time only wakes the waiters. False for a record.
    const bool only_wakes = true;
    /// Due time in the timer heap; max: not in the heap.
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
    explicit condition(bool only_wakes) : only_wakes(only_wakes) {}
};

} // namespace colock::inline v0::detail
