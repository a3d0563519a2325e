// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/client.hpp"

#include "core/strand.hpp"
#include "redis/links.hpp"
#include "redis/never_sent.hpp"
#include "redis/pipeline.hpp"
#include "redis/session.hpp"
#include "redis/subscriptions.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace colock::redis::detail {

using namespace std::chrono_literals;

struct client::runtime
{
    runtime(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : strand(colock::detail::new_strand(executor)), told(std::move(events)), made(strand, owner.config_),
          dropped(strand, owner, owner.outbox_), commands(strand, owner, owner.config_, made, told, owner.anchor_),
          sent(strand, owner, owner.config_, commands, owner.outbox_, owner.hints_, dropped),
          messages(strand, owner, owner.config_, made, told, commands, owner.sources_), timer(strand)
    {
    }

    asio::any_io_executor strand;
    remote::reports told;
    links made;
    never_sent dropped;
    session commands;
    pipeline sent;
    subscriptions messages;

    asio::steady_timer timer;
    lease_clock::time_point turn_at = lease_clock::time_point::max();
    lease_clock::duration turn_delay{};

    /// Told once all is closed.
    std::vector<completion<closed>> closing;
};

client::client(detail::settings checked) : config_(std::move(checked)) {}

client::~client() = default;

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings checked, std::weak_ptr<remote::client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked));
    made->runtime_ = std::make_unique<runtime>(executor, *made, std::move(events));
    join_context(executor, made);
    return made;
}

// From any thread.

template <class Function, class Initiate>
void client::on_strand(Function function, Initiate initiate)
{
    asio::any_io_executor strand;
    {
        const std::lock_guard guard(mutex_);
        if (!runtime_)
            return;
        strand = runtime_->strand;
    }
    initiate(strand, [self = keep(*this), function = std::move(function)]() mutable { function(*self); });
}

template <class Function>
void client::on_strand(Function function)
{
    on_strand(std::move(function), [](const auto& strand, auto handler) { asio::post(strand, std::move(handler)); });
}

void client::submit(operation_ptr added)
{
    constexpr lease_clock::time_point unset{};
    if (added->asked_at == unset)
        added->asked_at = lease_clock::now();
    if (added->deadline == unset)
        added->deadline = config_.deadlines().of(added->asked_at);
    added->anchors = added->may_anchor() && anchor_.take_turn(added->asked_at);
    const bool first = outbox_.add(std::move(added)) == outbox::added::first;
    // Whoever finds the queue filled has been preceded by one who has posted, or whose batch in flight will look again.
    if (!first || hints_.is_due.load(std::memory_order_relaxed))
        return;
    const auto go_on = [](client& self) { self.runtime_->sent.flush(); };
    if (hints_.one_at_a_time.exchange(false, std::memory_order_relaxed))
        on_strand(go_on, [](const auto& strand, auto handler) { asio::dispatch(strand, std::move(handler)); });
    else
        on_strand(go_on);
}

remote::interest client::watch(const std::string& channel)
{
    remote::interest made(std::shared_ptr<remote::wait_sources>(keep(*this), &sources_), channel);
    if (listening_due_.exchange(true))
        return made;
    try {
        on_strand([](client& self) {
            self.listening_due_ = false;
            self.runtime_->commands.plan().reopen();
            self.runtime_->messages.on(subscriptions::event::wanted);
            self.arm_turn();
        });
    } catch (...) {
        listening_due_ = false;
        throw;
    }
    return made;
}

const remote::lost_requests& client::lost() const noexcept
{
    return runtime_->commands.lost();
}

// What one part tells the others.

remote::connection_plan::demand client::demand() const noexcept
{
    const auto& sent = runtime_->sent;
    return {.needed = !outbox_.empty() || !sent.idle() || !sources_.empty(), .under_way = sent.awaits_answers()};
}

remote::connection_plan::surroundings client::surroundings() const noexcept
{
    const auto& run = *runtime_;
    return {.others_open = run.messages.connected(), .untold = !run.sent.idle(), .closing = !run.closing.empty()};
}

void client::opened()
{
    auto& run = *runtime_;
    run.messages.follow_requests();
    run.sent.flush();
    run.messages.on(subscriptions::event::wanted);
}

void client::refuse(const failure_ptr& why)
{
    auto& run = *runtime_;
    run.dropped.add(outbox_.take_all(), why);
    run.commands.on(session::event::refused);
    run.dropped.tell();
    arm_turn();
}

// Time: deadlines, polls, unused channels, idle connections. One timer, and coarse.

void client::arm_turn()
{
    auto& run = *runtime_;
    auto pace = config_.deadlines().pace();
    if (run.messages.polls())
        pace = std::min<lease_clock::duration>(pace, config_.poll_interval);
    const auto wanted = run.commands.plan().turns_again_in(demand(), surroundings(), pace);
    if (!wanted) {
        if (std::exchange(run.turn_at, lease_clock::time_point::max()) != lease_clock::time_point::max())
            run.timer.cancel();
        return;
    }
    const auto delay = *wanted;
    if (delay == lease_clock::duration::max())
        return;
    // An earlier turn will do, and a little later one.
    if (run.turn_at != lease_clock::time_point::max() && run.turn_delay <= delay)
        return;
    const auto at = lease_clock::now() + delay;
    if (run.turn_at <= at + 5ms)
        return;
    run.turn_at = at;
    run.turn_delay = delay;
    run.timer.expires_after(delay);
    run.timer.async_wait([self = keep(*this)](const error_code& code) {
        if (!code)
            self->turn(std::exchange(self->runtime_->turn_at, lease_clock::time_point::max()));
    });
}

void client::turn(lease_clock::time_point due)
{
    auto& run = *runtime_;
    run.sent.postpone(remote::deadlines::stood_still(due, lease_clock::now()));
    run.sent.end_overdue();
    run.messages.sweep();
    close_if_idle();
    arm_turn();
}

// The end.

void client::close_if_idle()
{
    auto& run = *runtime_;
    run.messages.on(subscriptions::event::turn);
    if (run.commands.plan().out_of_time(lease_clock::now()))
        give_up_all();
    run.commands.on(session::event::turn);
    finish_close();
}

/// The time that a close was given is over: what is queued is not sent any more, and no answer is waited for.
void client::give_up_all()
{
    auto& run = *runtime_;
    const auto& trouble = run.commands.problem();
    run.dropped.add(
        outbox_.take_all(), make_failure(errc::unavailable, "the adapter was closed before this could be sent",
                                trouble ? trouble->cause : error_code()));
    run.dropped.tell();
    if (!run.commands.plan().open() || !run.sent.awaits_answers())
        return;
    run.commands.on(session::event::given_up);
    run.commands.connection()->close();
}

void client::finish_close() noexcept
{
    auto& run = *runtime_;
    // Whoever hears of the close hears nothing more.
    if (run.closing.empty() || !run.dropped.empty() ||
        !run.commands.plan().finish_close(lease_clock::now(), surroundings()))
        return;
    auto told = std::exchange(run.closing, {});
    // The turns that it took are taken no more.
    arm_turn();
    for (auto& each : told)
        each(closed{});
}

void client::close(lease_clock::duration deadline, completion<closed> done)
{
    on_strand([deadline, done = std::move(done)](client& self) mutable {
        auto& run = *self.runtime_;
        run.closing.push_back(std::move(done));
        run.commands.plan().close(saturating_add(lease_clock::now(), deadline));
        run.messages.sweep();
        self.close_if_idle();
        self.arm_turn();
    });
}

void client::retire() noexcept
{
    try {
        on_strand([](client& self) {
            self.runtime_->commands.plan().retire();
            self.close_if_idle();
            self.arm_turn();
        });
    } catch (...) {
        // Without memory the connection stays until its idle timeout.
    }
}

void client::context_shutdown() noexcept
{
    std::unique_ptr<runtime> dead;
    {
        const std::lock_guard guard(mutex_);
        dead = std::move(runtime_);
    }
    static_cast<void>(outbox_.close());
    static_cast<void>(sources_.drop_all());
}

void client::context_forked() noexcept
{
    if (!runtime_)
        return;
    // At once, and not on the strand: what is queued there would come first, and write to connections that the parent
    // goes on using. The child leaves them without a word, and kills nothing.
    auto& run = *runtime_;
    run.commands.forked();
    run.messages.forked();

    const auto why = make_failure(errc::forked);
    run.sent.forked(why);
    run.dropped.add(outbox_.take_all(), why);
    run.dropped.add(sources_.drop_all());
    // What is told to others is told from the strand, as ever.
    on_strand([](client& self) {
        self.runtime_->dropped.tell();
        self.arm_turn();
        self.finish_close();
    });
}

} // namespace colock::redis::detail
