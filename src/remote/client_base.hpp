// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "remote/wait_sources.hpp"

#include <colock/adapter.hpp>
#include <colock/clock.hpp>
#include <colock/context_member.hpp>
#include <colock/detail/single_thread.hpp>

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

/// What the clients of all servers have in common: a strand that their parts live on, one coarse timer for all of these
/// (deadlines, polls, what is idle), and the order in which all of it is closed.
///
/// Thread safety: watch, close, retire and on_strand may be called from any thread; all else on the strand.
class client_base : public context_member, public parts_owner
{
public:
    ~client_base() override;

    [[nodiscard]] interest watch(const std::string& source);
    /// Somebody goes on waiting for it, after an event: where its events come once, the server is asked for the next.
    void watch_again(const std::string& source);

    /// Closes what nobody needs, and ends at the latest after `deadline`.
    void close(lease_clock::duration deadline, completion<closed> done);
    /// The adapter is gone: nothing is kept beyond what is under way.
    void retire() noexcept;

    void context_shutdown() noexcept final;

    void arm_turn() final;
    void finish_close() noexcept final;

protected:
    /// What belongs to the strand, the strand included. The client's own parts are added to it.
    struct runtime
    {
        runtime(const asio::any_io_executor& executor, std::weak_ptr<client_events> events);
        runtime(const runtime&) = delete;
        runtime& operator=(const runtime&) = delete;
        virtual ~runtime();

        asio::any_io_executor strand;
        reports told;

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

    /// Posts `function(self)`; drops it if the context is gone. `initiate` is given the strand and a handler.
    template <class Self, class Function, class Initiate>
    static void on_strand(Self& self, Function function, Initiate initiate)
    {
        const client_base& base = self;
        asio::any_io_executor strand;
        {
            const std::lock_guard guard(base.mutex_);
            if (!base.runtime_)
                return;
            strand = base.runtime_->strand;
            base.posting_.fetch_add(1, std::memory_order_relaxed);
        }
        auto kept = self.keep(self);
        const posting_guard at_end{base.posting_, strand};
        initiate(strand, [kept, function = std::move(function)]() mutable { function(*kept); });
    }
    template <class Self, class Function>
    static void on_strand(Self& self, Function function)
    {
        on_strand(self, std::move(function),
            [](const auto& strand, auto handler) { asio::post(strand, std::move(handler)); });
    }

    /// Of the connection for commands.
    [[nodiscard]] virtual connection_plan& plan() noexcept = 0;
    /// Beside that connection; `closing` is not asked for.
    [[nodiscard]] virtual connection_plan::surroundings surroundings() const noexcept = 0;
    /// Between two turns of the timer, while there is something to look at.
    [[nodiscard]] virtual lease_clock::duration pace() const noexcept = 0;
    /// Somebody has begun to wait.
    virtual void listen() = 0;
    /// \param stood_still for so long nothing ran that should have: no deadline counts that
    virtual void look_around(lease_clock::duration stood_still) = 0;
    /// Lets go of the events that nobody waits for any more.
    virtual void forget_unused() = 0;
    /// Connections that nobody needs are closed now.
    virtual void close_unused() = 0;
    /// The time that a close was given is over: what is queued is not sent any more, and no answer is waited for.
    virtual void give_up_all() = 0;
    /// Some who were given up are still to be told: whoever hears of a close hears nothing more.
    [[nodiscard]] virtual bool owes_news() const noexcept = 0;
    /// The context is gone: nobody is told.
    virtual void drop_all() noexcept = 0;

private:
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
    [[nodiscard]] connection_plan::surroundings all_surroundings() const noexcept;
    void turn(lease_clock::time_point due);
    void close_if_idle();

    wait_sources sources_;
    /// Somebody has begun to wait: what that leads to has been posted already.
    std::atomic<bool> listening_due_{false};

    /// Guards whether there is a runtime.
    mutable colock::detail::light_mutex mutex_;
    std::unique_ptr<runtime> runtime_;
    /// Threads that are posting to the strand. Increased under the mutex.
    mutable std::atomic<unsigned> posting_{0};
};

} // namespace colock::remote
