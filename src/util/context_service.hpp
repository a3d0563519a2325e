// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/single_thread.hpp>
#include <colock/spi/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace colock::inline v0::detail {

class handler_registry;
struct registered_tag;

/// Returns the execution context of a non-empty executor.
[[nodiscard]] inline asio::execution_context& context_of(const asio::any_io_executor& executor)
{
    return asio::query(executor, asio::execution::context);
}

/// Returns whether the executor belongs to `asio::system_context`, whose threads a post would start.
[[nodiscard]] bool is_system(const asio::any_io_executor& executor);

/// A handler that waits for something outside of its own execution context. It is destroyed when that context shuts
/// down, so that nothing is posted to a context that no longer exists.
///
/// Reference-counted: the registry of the handler's context keeps the object until the handler is completed or
/// abandoned.
///
/// Thread safety: all members may be called from any thread.
class pending_handler : public boost::intrusive::list_base_hook<boost::intrusive::tag<registered_tag>>
{
public:
    pending_handler() = default;
    pending_handler(const pending_handler&) = delete;
    pending_handler& operator=(const pending_handler&) = delete;

    /// Registers the handler with the context of `registry`. Must be called once, before anything can complete the
    /// handler.
    /// \return false if that context has shut down; the handler has then been abandoned.
    bool enroll(std::shared_ptr<handler_registry> registry);

    friend void intrusive_ptr_add_ref(const pending_handler* counted) noexcept { counted->references_.add(); }
    friend void intrusive_ptr_release(const pending_handler* counted) noexcept
    {
        if (counted->references_.remove())
            delete counted;
    }

protected:
    virtual ~pending_handler() = default;

    /// Calls `post`, which moves the handler to its executor, unless the handler has been completed or abandoned. The
    /// context cannot shut down during the call. If `post` throws, the handler is not completed. The caller must hold a
    /// reference to the object.
    template <class Function>
    void complete(Function post);

private:
    friend class handler_registry;

    /// Called when the handler's context shuts down: destroys the handler and its executor. Called at most once, and
    /// not after complete().
    virtual void abandon() noexcept = 0;

    mutable reference_count references_;
    /// Guarded by the registry's mutex. Next to another small member, because there may be many thousands of objects.
    bool registered_ = false;
    std::shared_ptr<handler_registry> registry_;
};

/// The pending handlers of one execution context. The registry outlives the context, so that threads of other contexts
/// can check whether they may still post to the context.
///
/// Thread safety: all members may be called from any thread.
class handler_registry
{
public:
    /// Returns the registry of the executor's context. The context must not have shut down.
    [[nodiscard]] static std::shared_ptr<handler_registry> of(const asio::any_io_executor& executor);

    /// Calls `function` unless the context has shut down. The context cannot shut down during the call. Returns whether
    /// the function was called.
    template <class Function>
    bool if_open(Function function)
    {
        const std::lock_guard guard(mutex_);
        if (closed_)
            return false;
        function();
        return true;
    }

    /// Whether the context has begun to shut down.
    [[nodiscard]] bool is_closed()
    {
        const std::lock_guard guard(mutex_);
        return closed_;
    }

    /// Called when the context shuts down: abandons all handlers. After the call, other contexts post nothing to this
    /// context.
    void close() noexcept;

private:
    friend class pending_handler;
    using handler_list = boost::intrusive::list<pending_handler,
        boost::intrusive::base_hook<boost::intrusive::list_base_hook<boost::intrusive::tag<registered_tag>>>,
        boost::intrusive::constant_time_size<false>>;

    /// A std::mutex, not a light_mutex, because a post to the system executor may create threads.
    std::mutex mutex_;
    bool closed_ = false;
    /// The list holds one reference to each handler.
    handler_list handlers_;
};

template <class Function>
void pending_handler::complete(Function post)
{
    const std::lock_guard guard(registry_->mutex_);
    if (!registered_)
        return;
    post();
    registered_ = false;
    registry_->handlers_.erase(registry_->handlers_.iterator_to(*this));
    intrusive_ptr_release(this);
}

/// Asio service that notifies the members of an execution context of its shutdown. Holds weak references
/// to the members. Also owns the registry of the handlers that wait outside of the context.
///
/// Thread safety: the public functions may be called from any thread; the context calls all others.
class context_service final : public asio::execution_context::service
{
public:
    using key_type = context_service;
    static asio::execution_context::id id;

    explicit context_service(asio::execution_context& context);

    /// Returns the service of the executor's context, and creates it if there is none. The context must not have shut
    /// down.
    [[nodiscard]] static context_service& of(const asio::any_io_executor& executor);
    /// Registers a member with the context of `executor`. A member that is destroyed needs no deregistration.
    static void join(const asio::any_io_executor& executor, std::weak_ptr<context_member> member);

    [[nodiscard]] const std::shared_ptr<handler_registry>& handlers() const noexcept { return handlers_; }

private:
    void shutdown() noexcept override;
    [[nodiscard]] std::vector<std::shared_ptr<context_member>> members();

    std::mutex mutex_;
    std::vector<std::weak_ptr<context_member>> members_;
    std::size_t prune_at_ = 64;
    const std::shared_ptr<handler_registry> handlers_ = std::make_shared<handler_registry>();
};

/// An executor that is released when its context shuts down.
class executor_cell final : public context_member
{
public:
    [[nodiscard]] static std::shared_ptr<executor_cell> make(asio::any_io_executor executor);

    /// Returns the executor; empty after the context has shut down.
    [[nodiscard]] asio::any_io_executor get() const;
    void context_shutdown() noexcept override;

private:
    mutable std::mutex mutex_;
    asio::any_io_executor executor_;
};

} // namespace colock::inline v0::detail
