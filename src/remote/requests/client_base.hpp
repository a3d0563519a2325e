// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/connection_plan.hpp"
#include "remote/requests/event_reporter.hpp"
#include "remote/requests/request_queue.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/clock.hpp>
#include <colock/detail/context_gate.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::remote {

class connection_loop;
class listening_loop;

/// The base of the clients of all servers. It has the strand that the parts of a client run on, the request queue, and
/// one coarse timer for all parts (deadlines, polls, idle connections). It also defines the order in which the parts
/// are closed.
///
/// A client owns its parts. A part knows the client only as this type, and does not know the parts that use it.
///
/// Thread safety: submit, watch, watch_again, close, cancel_close, retire and on_strand may be called from any thread;
/// all other functions belong to the strand.
class client_base : public context_member, public std::enable_shared_from_this<client_base>
{
public:
    /// States what a client needs its connections for, and what keeps it from being closed.
    struct usage
    {
        /// An operation waits to be sent or answered, or locks depend on the connection for requests (an ephemeral
        /// node ends with its session). A client does not count the callers that wait for an event: `client_base` adds
        /// them.
        bool needed = false;
        /// An operation was sent, and is not answered.
        bool has_in_flight = false;
        /// A connection other than the one for requests is open.
        bool others_open = false;
        /// An operation was not answered, or its completion has not been called yet.
        bool has_pending_completions = false;
        /// An operation was given up, and its completion has not been called yet. A close completes only after these
        /// completions.
        bool has_unreported_failures = false;
        /// Interval of the timer while the client is in use.
        lease_clock::duration timer_interval{};
    };

    ~client_base() override;

    /// Starts an operation as soon as possible. The operation ends on the strand. It is dropped if the context is gone.
    void submit(operation_ptr operation) { queue_.submit(std::move(operation)); }

    [[nodiscard]] source_subscription watch(const std::string& source);
    /// Called when a caller continues to wait for the source after an event. If a subscription at this server delivers
    /// only one event, the client subscribes again.
    void watch_again(const std::string& source);

    /// Starts a close: until `cancel_close`, each connection is closed as soon as it is not needed. `done` is called
    /// when all are closed. After `timeout`, it is called when the operations that are left have failed.
    void close(lease_clock::duration timeout, completion<close_outcome> done);
    /// Ends the effect of `close`, because the client is used again.
    void cancel_close() noexcept;
    /// Called when the adapter no longer exists. Connections are kept only while operations are in flight.
    void retire() noexcept;

    void context_shutdown() noexcept final;

    // The following functions are for the parts.
    /// Returns a pointer to the part for a handler. The pointer keeps the client and all its parts alive.
    template <class Part>
    [[nodiscard]] std::shared_ptr<Part> keep(Part& part)
    {
        return {shared_from_this(), &part};
    }
    /// Calls `submit(strand, handler)`, where the handler calls `function(part)`. Does nothing if the context has shut
    /// down.
    template <class Part, class Function, class Submit>
    void on_strand(Part& part, Function function, Submit submit)
    {
        const auto gate = gate_;
        gate->if_open([&] {
            asio::any_io_executor strand;
            {
                const std::lock_guard guard(mutex_);
                if (!runtime_)
                    return;
                strand = runtime_->strand;
            }
            submit(strand, [kept = keep(part), function = std::move(function)]() mutable { function(*kept); });
        });
    }
    /// Like the function above, with `asio::post`.
    template <class Part, class Function>
    void on_strand(Part& part, Function function)
    {
        on_strand(part, std::move(function),
            [](const auto& strand, auto handler) { asio::post(strand, std::move(handler)); });
    }
    /// The connection for requests.
    [[nodiscard]] connection_loop& requests() const noexcept { return *runtime_->requests; }
    /// How the connection for requests is used.
    [[nodiscard]] connection_plan::demand demand() const noexcept { return demand(current_usage()); }
    [[nodiscard]] request_queue& queue() noexcept { return queue_; }
    /// Starts what waits for a connection for requests: operations and subscriptions. Must be called when a new
    /// connection is ready.
    void on_connected();
    /// Updates the timer, because something may be due earlier than before.
    void arm_timer();
    /// Completes a close if possible. Called when a connection has ended or a completion was called.
    void finish_close() noexcept;

protected:
    /// The objects that belong to the strand, and the strand itself. The client's own parts are added by a derived
    /// class.
    struct runtime
    {
        runtime(asio::any_io_executor strand, std::weak_ptr<contact> reports);
        runtime(const runtime&) = delete;
        runtime& operator=(const runtime&) = delete;
        virtual ~runtime();

        asio::any_io_executor strand;
        event_reporter reporter;
        /// The connection for requests, which is one of the client's own parts.
        connection_loop* requests = nullptr;
        /// The connection for events; null if events arrive on the connection for requests.
        listening_loop* events = nullptr;

        asio::steady_timer timer;
        lease_clock::time_point timer_due = lease_clock::time_point::max();
        lease_clock::duration timer_delay{};

        /// Completions of the closes in progress.
        std::vector<completion<close_outcome>> closing{};
    };

    client_base(deadlines deadlines, request_queue::limits limits, request_queue::callbacks callbacks)
        : queue_(*this, deadlines, limits, std::move(callbacks))
    {
    }
    void start(std::unique_ptr<runtime> new_runtime)
    {
        gate_ = colock::detail::context_gate::of(new_runtime->strand);
        runtime_ = std::move(new_runtime);
    }
    /// Must be called in the destructor of the client, because the parts use members of the client.
    void stop() noexcept { runtime_.reset(); }

    /// Returns null after the context has shut down. The strand must not be used then.
    [[nodiscard]] runtime* runtime_if_open() const noexcept { return runtime_.get(); }
    [[nodiscard]] wait_sources& sources() noexcept { return sources_; }
    [[nodiscard]] const wait_sources& sources() const noexcept { return sources_; }

    [[nodiscard]] virtual usage current_usage() const noexcept;
    /// Called when a caller has begun to wait for an event, and when requests can be sent on a new connection.
    virtual void listen();
    /// Called at each timer event.
    virtual void sweep() {}

    request_queue queue_;

private:
    void listen_soon();
    /// Calls the completions of the closes in progress.
    void complete_closes() noexcept;
    [[nodiscard]] connection_plan::demand demand(const usage& now) const noexcept;
    [[nodiscard]] connection_plan::client_state client_state(const usage& now) const noexcept;
    void on_timer(lease_clock::duration stall_time);

    wait_sources sources_;
    /// A caller has begun to wait, and the handler that calls `listen` has been posted already.
    std::atomic<bool> listening_due_{false};

    /// Guards `runtime_` where other threads read it, and where the end of the context resets it.
    mutable colock::detail::light_mutex mutex_;
    std::unique_ptr<runtime> runtime_;
    /// Whether a close may be in effect.
    std::atomic<bool> closes_{false};
    /// The gate of the context. It delays the end of the context while another thread uses the strand.
    std::shared_ptr<colock::detail::context_gate> gate_;
};

} // namespace colock::inline v0::remote
