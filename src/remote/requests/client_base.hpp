// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/connection_plan.hpp"
#include "remote/requests/event_reporter.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/clock.hpp>
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

namespace colock::remote {

class connection_loop;

/// The base of the clients of all servers. It has the strand that the parts of a client run on, one coarse timer for
/// all of them (deadlines, polls, idle connections), and the order in which they are closed.
///
/// A client owns its parts. A part knows the client as this type: it knows nothing of the parts that use it.
///
/// Thread safety: watch, close, retire and on_strand may be called from any thread; the rest belongs to the strand.
class client_base : public context_member, public std::enable_shared_from_this<client_base>
{
public:
    /// States what a client needs its connections for, and what keeps it from being closed.
    struct usage
    {
        /// An operation waits to be sent or answered, or something at the server needs the connection for requests.
        /// A client does not count the callers that wait for an event: `client_base` adds them.
        bool needed = false;
        /// An operation was sent, and is not answered.
        bool under_way = false;
        /// Another connection than that for requests is open.
        bool others_open = false;
        /// An operation was not answered, or its caller was not told of the answer.
        bool has_pending_completions = false;
        /// An operation was given up, and its caller was not told: a close is not told before.
        bool owes_news = false;
        /// Time between two turns of the timer while the client is in use.
        lease_clock::duration pace{};
    };

    ~client_base() override;

    [[nodiscard]] interest watch(const std::string& source);
    /// Somebody goes on waiting for it, after an event: where its events come once, the server is asked for the next.
    void watch_again(const std::string& source);

    /// Closes what nobody needs, and ends at the latest after `deadline`.
    void close(lease_clock::duration deadline, completion<closed> done);
    /// Ends a close that is under way: somebody uses the client again.
    void cancel_close() noexcept;
    /// The adapter is gone: nothing is kept beyond what is under way.
    void retire() noexcept;

    void context_shutdown() noexcept final;

    // For the parts.
    /// The part, for a handler: keeps all of them.
    template <class Part>
    [[nodiscard]] std::shared_ptr<Part> keep(Part& part)
    {
        return {shared_from_this(), &part};
    }
    /// Posts `function(part)`; drops it if the context is gone. `initiate` is given the strand and a handler.
    template <class Part, class Function, class Initiate>
    void on_strand(Part& part, Function function, Initiate initiate)
    {
        asio::any_io_executor strand;
        {
            const std::lock_guard guard(mutex_);
            if (!runtime_)
                return;
            strand = runtime_->strand;
            posting_.fetch_add(1, std::memory_order_relaxed);
        }
        auto kept = keep(part);
        const posting_guard at_end{posting_, strand};
        initiate(strand, [kept, function = std::move(function)]() mutable { function(*kept); });
    }
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
    /// Requests may be sent, on a new connection.
    virtual void opened() = 0;
    /// No attempt to connect will succeed: every operation that was not sent fails with `why`, and the connection for
    /// requests is told `event::refused`.
    virtual void refuse(const failure_ptr& why) = 0;
    /// Something may be due sooner than before.
    void arm_turn();
    /// A connection has ended, or a caller was told of an end: a close may be complete.
    void finish_close() noexcept;

protected:
    /// What belongs to the strand, the strand included. The client's own parts are added to it.
    struct runtime
    {
        runtime(const asio::any_io_executor& executor, std::weak_ptr<client_events> events);
        runtime(const runtime&) = delete;
        runtime& operator=(const runtime&) = delete;
        virtual ~runtime();

        asio::any_io_executor strand;
        event_reporter told;
        /// The connection for requests, which is one of the client's own parts.
        connection_loop* requests = nullptr;

        asio::steady_timer timer;
        lease_clock::time_point turn_at = lease_clock::time_point::max();
        lease_clock::duration turn_delay{};

        /// Told once all is closed.
        std::vector<completion<closed>> closing{};
    };

    client_base() = default;
    void start(std::unique_ptr<runtime> made) noexcept { runtime_ = std::move(made); }
    /// In the client's destructor: its parts use what is its own.
    void stop() noexcept { runtime_.reset(); }

    /// Null once the context has shut down: then nothing is to be done on the strand any more.
    [[nodiscard]] runtime* running() const noexcept { return runtime_.get(); }
    [[nodiscard]] wait_sources& sources() noexcept { return sources_; }
    [[nodiscard]] const wait_sources& sources() const noexcept { return sources_; }

private:
    [[nodiscard]] virtual usage current_usage() const noexcept = 0;
    /// Somebody has begun to wait for an event.
    virtual void listen() = 0;
    /// Ends what is overdue, and lets go of the events that nobody waits for any more. The connection for requests has
    /// its turn afterwards.
    /// \param stood_still time in which the event loop did not run, and which no deadline counts
    virtual void sweep(lease_clock::duration stood_still) = 0;
    /// The time that a close was given is over: what is queued is not sent any more, and no answer is waited for.
    virtual void give_up_all() = 0;
    /// The context is gone: nobody is told.
    virtual void drop_all() noexcept = 0;

    /// A thread uses the strand: the shutdown of its context waits until the strand has been released.
    struct posting_guard
    {
        std::atomic<unsigned>& count;
        asio::any_io_executor& strand;

        ~posting_guard()
        {
            strand = nullptr;
            if (count.fetch_sub(1, std::memory_order_release) == 1)
                count.notify_all();
        }
    };

    void listen_soon();
    void tell_closed() noexcept;
    [[nodiscard]] connection_plan::demand demand(const usage& now) const noexcept;
    [[nodiscard]] connection_plan::surroundings surroundings(const usage& now) const noexcept;
    void turn(lease_clock::duration stood_still);

    wait_sources sources_;
    /// Somebody has begun to wait: what that leads to has been posted already.
    std::atomic<bool> listening_due_{false};

    /// Guards whether there is a runtime.
    mutable colock::detail::light_mutex mutex_;
    std::unique_ptr<runtime> runtime_;
    /// A close may be under way.
    std::atomic<bool> closes_{false};
    /// Threads that are posting to the strand. Increased under the mutex.
    std::atomic<unsigned> posting_{0};
};

} // namespace colock::remote
