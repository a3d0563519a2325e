// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/single_thread.hpp>
#include <colock/error.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <optional>
#include <utility>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

class core;
struct suspended_tag;
using auto_unlink = boost::intrusive::link_mode<boost::intrusive::auto_unlink>;

/// A coroutine, or another handler, that is suspended until a `condition` changes. Does not live in the coroutine's
/// frame, because the cancellation slot, or a thread that is about to resume the coroutine, may refer to this object
/// after the frame is gone.
///
/// In two lists while it is suspended: that of the condition, and that of the core. Reference-counted: the core owns a
/// reference meanwhile. Thread safety: the mutex of the core guards the lists.
class suspended_handler : public boost::intrusive::list_base_hook<auto_unlink>,
                          public boost::intrusive::list_base_hook<boost::intrusive::tag<suspended_tag>, auto_unlink>
{
public:
    using ptr = boost::intrusive_ptr<suspended_handler>;
    /// Links the handler into the list of its condition.
    using condition_hook = boost::intrusive::list_base_hook<auto_unlink>;
    /// Links the handler into one of the lists of suspended handlers of its core, or into a wake list.
    using suspended_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<suspended_tag>, auto_unlink>;
    using list = boost::intrusive::list<suspended_handler, boost::intrusive::base_hook<suspended_hook>,
        boost::intrusive::constant_time_size<false>>;

    suspended_handler(const suspended_handler&) = delete;
    suspended_handler& operator=(const suspended_handler&) = delete;

    /// Whether the handler is still suspended. The mutex of the core must be held.
    [[nodiscard]] bool is_suspended() const noexcept { return condition_hook::is_linked(); }
    /// Removes the handler from the lists. Requires `is_suspended()`.
    [[nodiscard]] ptr remove() noexcept
    {
        condition_hook::unlink();
        suspended_hook::unlink();
        return {this, false};
    }

    /// Posts the handler to its executor. The mutex of the core must not be held.
    /// \throws std::bad_alloc The function may then be called again.
    void resume(error_code error);

    /// Whether a cancellation has arrived. Guarded by the mutex of the core.
    bool is_cancelled = false;
    /// Whether a cancellation had arrived when the handler was added to a wake list. If so, the wait ends with
    /// `operation_aborted`. Belongs to the thread that owns the wake list.
    bool is_woken_by_cancellation = false;

    friend void intrusive_ptr_add_ref(const suspended_handler* counted) noexcept { counted->references_.add(); }
    friend void intrusive_ptr_release(const suspended_handler* counted) noexcept
    {
        if (counted->references_.remove())
            delete counted;
    }

protected:
    explicit suspended_handler(core& owner) : owner_(owner) {}
    virtual ~suspended_handler() = default;

    /// Removes the handler from the lists if it is still suspended, so that it is not resumed any more. Returns false
    /// if it is being resumed, or was not suspended. The mutex of the core must not be held.
    bool remove_if_suspended() noexcept;

private:
    friend class wake_list;
    /// The function object that is posted to invoke the handler. It is destroyed without being invoked if its context
    /// is destroyed, or if there is no memory to post it.
    class continuation;

    [[nodiscard]] virtual asio::any_io_executor executor() const = 0;
    /// Invokes the handler. Called on its executor.
    virtual void invoke_handler(error_code error) = 0;
    /// Destroys the handler without invoking it, because its context is being destroyed.
    virtual void destroy_handler() noexcept = 0;

    /// The core in which the handler waits. While it is suspended, the coroutine's frame keeps the core alive.
    core& owner_;
    mutable reference_count references_;
    /// Whether the continuation has been posted.
    std::atomic<bool> is_posted_{false};
};

/// Stores a handler by its own type, without an `any_completion_handler` and without a copy of its executor, because
/// there may be ten thousand waits.
template <class Handler>
class typed_suspended_handler final : public suspended_handler
{
public:
    typed_suspended_handler(core& owner, Handler&& handler) : suspended_handler(owner), handler_(std::move(handler)) {}

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
    void destroy_handler() noexcept override { handler_.reset(); }

    std::optional<Handler> handler_;
};

/// Whether a wait ends when its core accepts no new acquires.
enum class on_close : bool
{
    keep_waiting,
    end_wait,
};

} // namespace colock::inline v0::detail
