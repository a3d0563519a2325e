// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/client.hpp"

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/session.hpp"
#include "redis/pipeline/pipeline.hpp"
#include "redis/pipeline/unsent_operations.hpp"
#include "redis/pubsub/subscriptions.hpp"
#include "remote/adapter/clock_lead.hpp"

#include <boost/asio/dispatch.hpp>

#include <algorithm>
#include <utility>

namespace colock::redis::detail {

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : runtime(executor, std::move(events)), made(strand, owner.config_), dropped(owner.send_queue_),
          commands(strand, owner, owner.config_, made, told, owner.anchor_, owner.replicas_seen_),
          sent(strand, owner, owner.config_, commands, owner.send_queue_, owner.hints_, dropped),
          messages(strand, owner, owner.config_, made, told, commands, owner.sources())
    {
        requests = &commands;
    }

    connection_factory made;
    unsent_operations dropped;
    session commands;
    pipeline sent;
    subscriptions messages;
    /// A handler is posted that tells more of the dropped operations.
    bool is_telling = false;
};

client::client(detail::settings checked)
    : config_(std::move(checked)),
      // A group of Sentinels is there to promote replicas.
      replicas_seen_(!config_.where.master.empty())
{
}

client::~client()
{
    stop();
}

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings checked, std::weak_ptr<remote::client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked));
    made->start(std::make_unique<parts>(executor, *made, std::move(events)));
    join_context(executor, made);
    return made;
}

client::parts& client::run() const noexcept
{
    return static_cast<parts&>(*running());
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
    if (added->asked_at == unset)
        added->asked_at = lease_clock::now();
    if (added->deadline == unset)
        added->deadline = config_.deadlines().of(added->asked_at);
    added->anchors = added->may_anchor() && anchor_.take_turn(added->asked_at);
    const bool first = send_queue_.add(std::move(added)) == send_queue::added::first;
    // Whoever finds the queue filled has been preceded by one who has posted, or whose batch in flight will look again.
    if (!first || hints_.is_due.load(std::memory_order_relaxed))
        return;
    const auto go_on = [](client& self) { self.run().sent.flush(); };
    if (hints_.one_at_a_time.exchange(false, std::memory_order_relaxed))
        on_strand(*this, go_on, [](const auto& strand, auto handler) { asio::dispatch(strand, std::move(handler)); });
    else
        on_strand(*this, go_on);
}

const remote::lost_requests& client::lost() const noexcept
{
    return run().commands.lost();
}

// What one part tells the others.

client::usage client::current_usage() const noexcept
{
    const auto& all = run();
    const bool is_idle = all.sent.idle();
    const auto usual = config_.deadlines().pace();
    return {.needed = !is_idle || !send_queue_.empty(),
        .under_way = all.sent.awaits_answers(),
        .others_open = all.messages.connected(),
        .has_pending_completions = !is_idle,
        .owes_news = !all.dropped.empty(),
        .pace = all.messages.polls() ? std::min<lease_clock::duration>(usual, config_.poll_interval) : usual};
}

void client::opened()
{
    auto& all = run();
    all.messages.follow_requests();
    all.sent.flush();
    all.messages.on(subscriptions::event::wanted);
}

void client::refuse(const failure_ptr& why)
{
    auto& all = run();
    all.dropped.add(send_queue_.take_all(), why);
    all.commands.on(session::event::refused);
    tell_dropped();
    arm_turn();
}

void client::listen()
{
    run().messages.on(subscriptions::event::wanted);
}

void client::sweep(lease_clock::duration stood_still)
{
    auto& all = run();
    all.sent.postpone(stood_still);
    all.sent.end_overdue();
    all.messages.sweep();
}

// The end.

/// Does nothing while a handler is posted that goes on.
void client::tell_dropped()
{
    auto& all = run();
    if (all.is_telling)
        return;
    // Set before any caller is told, because a caller may give up more.
    all.is_telling = true;
    all.is_telling = all.dropped.tell_some();
    if (!all.is_telling)
        return;
    on_strand(*this, [](client& self) {
        self.run().is_telling = false;
        self.tell_dropped();
        self.finish_close();
    });
}

void client::give_up_all()
{
    auto& all = run();
    const auto& trouble = all.commands.problem();
    all.dropped.add(
        send_queue_.take_all(), make_failure(errc::unavailable, "the adapter was closed before this could be sent",
                                    trouble ? trouble->cause : error_code()));
    tell_dropped();
    if (!all.commands.plan().open() || !all.sent.awaits_answers())
        return;
    all.commands.on(session::event::given_up);
    all.commands.connection()->close();
}

void client::drop_all() noexcept
{
    static_cast<void>(send_queue_.close());
}

void client::context_forked() noexcept
{
    if (!running())
        return;
    // At once, and not on the strand: what is queued there would come first, and write to connections that the parent
    // goes on using. The child leaves them without a word, and kills nothing.
    auto& all = run();
    all.commands.forked();
    all.messages.forked();

    const auto why = make_failure(errc::forked);
    all.sent.forked(why);
    all.dropped.add(send_queue_.take_all(), why);
    all.dropped.add(sources().drop_all());
    // What is told to others is told from the strand, as ever.
    on_strand(*this, [](client& self) {
        self.tell_dropped();
        self.arm_turn();
        self.finish_close();
    });
}

} // namespace colock::redis::detail
