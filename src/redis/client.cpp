// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/client.hpp"

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/pipeline.hpp"
#include "redis/connection/session.hpp"
#include "redis/pipeline/unsent_operations.hpp"
#include "redis/pubsub/subscriptions.hpp"
#include "remote/adapter/default_clock_lead.hpp"

#include <boost/asio/dispatch.hpp>

#include <algorithm>
#include <utility>

namespace colock::inline v0::redis::detail {

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<contact> reports)
        : runtime(executor, std::move(reports)), factory(strand, owner.config_), dropped_operations(owner.send_queue_),
          commands(strand, owner, owner.config_, factory, reporter, owner.anchor_, owner.replicas_seen_),
          sender(strand, owner, owner.config_, commands, owner.send_queue_, owner.hints_),
          messages(strand, owner, owner.config_, factory, reporter, commands, owner.sources())
    {
        requests = &commands;
    }

    connection_factory factory;
    unsent_operations dropped_operations;
    session commands;
    pipeline sender;
    subscriptions messages;
    /// True while a handler is posted that completes more of the dropped operations.
    bool is_end_posted = false;
};

client::client(detail::settings checked)
    : operation_client(std::move(checked)),
      // Sentinels promote replicas, so a server that is found through them has replicas.
      replicas_seen_(!config_.where.master.empty())
{
}

client::~client()
{
    stop();
}

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings checked, std::weak_ptr<contact> reports)
{
    auto result = std::make_shared<client>(std::move(checked));
    result->start(std::make_unique<parts>(executor, *result, std::move(reports)));
    join_context(executor, result);
    return result;
}

client::parts& client::active_parts() const noexcept
{
    return static_cast<parts&>(*runtime_if_open());
}

std::chrono::milliseconds client::max_clock_lead(std::chrono::milliseconds ttl) const noexcept
{
    if (config_.max_clock_lead)
        return *config_.max_clock_lead;
    return replicas_seen_.load(std::memory_order_relaxed) ? remote::default_clock_lead(ttl)
                                                          : std::chrono::milliseconds(0);
}

void client::submit(operation_ptr added)
{
    constexpr lease_clock::time_point unset{};
    if (added->requested_at == unset)
        added->requested_at = lease_clock::now();
    if (added->deadline == unset)
        added->deadline = config_.deadlines().deadline_for(added->requested_at);
    added->raises_counter = added->may_anchor() && anchor_.start_interval(added->requested_at);
    const bool first = send_queue_.add(std::move(added)) == send_queue::add_result::first;
    // A flush is already due: the operation that found the queue empty has posted one, or the completion of a batch in
    // flight flushes the queue.
    if (!first || hints_.is_due.load(std::memory_order_relaxed))
        return;
    const auto flush = [](client& self) { self.active_parts().sender.flush(); };
    if (hints_.is_idle.exchange(false, std::memory_order_relaxed))
        on_strand(*this, flush, [](const auto& strand, auto handler) { asio::dispatch(strand, std::move(handler)); });
    else
        on_strand(*this, flush);
}

const remote::lost_requests& client::lost() const noexcept
{
    return active_parts().commands.lost();
}

// Callbacks from the parts of the client.

client::usage client::current_usage() const noexcept
{
    const auto& all = active_parts();
    const bool is_idle = all.sender.idle();
    const auto usual = config_.deadlines().check_interval();
    return {.needed = !is_idle || !send_queue_.empty(),
        .has_in_flight = all.sender.awaits_answers(),
        .others_open = all.messages.connected(),
        .has_pending_completions = !is_idle,
        .has_unreported_failures = !all.dropped_operations.empty(),
        .timer_interval = all.messages.polls() ? std::min<lease_clock::duration>(usual, config_.poll_interval) : usual};
}

void client::opened()
{
    auto& all = active_parts();
    all.messages.follow_requests();
    all.sender.flush();
    all.messages.on(subscriptions::event::wanted);
}

void client::refuse(const failure_ptr& why)
{
    auto& all = active_parts();
    all.dropped_operations.add(send_queue_.take_all(), why);
    all.commands.on(session::event::refused);
    end_dropped();
    arm_timer();
}

void client::listen()
{
    active_parts().messages.on(subscriptions::event::wanted);
}

void client::sweep(lease_clock::duration stall_time)
{
    auto& all = active_parts();
    all.sender.postpone(stall_time);
    all.sender.end_overdue();
    all.messages.sweep();
}

// Shutdown.

/// Completes dropped operations. Does nothing while a handler is posted that continues with them.
void client::end_dropped()
{
    auto& all = active_parts();
    if (all.is_end_posted)
        return;
    // Set before the first completion is called, because the completion may drop more operations.
    all.is_end_posted = true;
    all.is_end_posted = all.dropped_operations.end_some();
    if (!all.is_end_posted)
        return;
    on_strand(*this, [](client& self) {
        self.active_parts().is_end_posted = false;
        self.end_dropped();
        self.finish_close();
    });
}

void client::give_up_all()
{
    auto& all = active_parts();
    const auto& connection_failure = all.commands.problem();
    all.dropped_operations.add(
        send_queue_.take_all(), make_failure(errc::unavailable, "the adapter was closed before this could be sent",
                                    connection_failure ? connection_failure->cause : error_code()));
    end_dropped();
    if (!all.commands.plan().open() || !all.sender.awaits_answers())
        return;
    all.commands.on(session::event::given_up);
    all.commands.connection()->close();
}

void client::drop_all() noexcept
{
    static_cast<void>(send_queue_.close());
}

} // namespace colock::inline v0::redis::detail
