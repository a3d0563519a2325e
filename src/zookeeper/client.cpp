// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/client.hpp"

#include "core/strand.hpp"
#include "zookeeper/watches.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Between two turns while locks are held, and nothing else is going on.
constexpr lease_clock::duration calm_pace = 1s;

} // namespace

struct client::runtime
{
    runtime(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : strand(colock::detail::new_strand(executor)), told(std::move(events)), watched(owner, owner.sources_),
          talks(strand, owner, owner.config_, told, watched), timer(strand)
    {
    }

    asio::any_io_executor strand;
    remote::reports told;
    watches watched;
    sessions talks;

    asio::steady_timer timer;
    lease_clock::time_point turn_at = lease_clock::time_point::max();
    lease_clock::duration turn_delay{};

    /// Told once all is closed.
    std::vector<completion<closed>> closing{};
};

client::client(settings checked) : config_(std::move(checked)) {}

client::~client() = default;

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked));
    made->runtime_ = std::make_unique<runtime>(executor, *made, std::move(events));
    join_context(executor, made);
    return made;
}

// From any thread.

template <class Function>
void client::on_strand(Function function)
{
    asio::any_io_executor strand;
    {
        const std::lock_guard guard(mutex_);
        if (!runtime_)
            return;
        strand = runtime_->strand;
    }
    asio::post(strand, [self = keep(*this), function = std::move(function)]() mutable { function(*self); });
}

void client::submit(operation_ptr added)
{
    added->deadline = config_.deadlines().of(lease_clock::now());
    if (errands_.add(std::move(added)))
        on_strand([](client& self) { self.flush(); });
}

remote::interest client::watch(const std::string& source)
{
    remote::interest made(std::shared_ptr<remote::wait_sources>(keep(*this), &sources_), source);
    if (watching_due_.exchange(true))
        return made;
    try {
        on_strand([](client& self) {
            self.watching_due_ = false;
            auto& talks = self.runtime_->talks;
            talks.plan().reopen();
            talks.on(sessions::event::wanted);
            self.watch_some();
            self.arm_turn();
        });
    } catch (...) {
        watching_due_ = false;
        throw;
    }
    return made;
}

// For operations, and what one part tells the others.

sessions& client::talks() noexcept
{
    return runtime_->talks;
}

void client::again(operation& which)
{
    errands_.put_back(which);
    on_strand([](client& self) { self.flush(); });
}

void client::ended(operation& which)
{
    errands_.ended(which);
    if (errands_.under_way())
        return;
    auto& talks = runtime_->talks;
    talks.on(sessions::event::told);
    if (talks.is_denied())
        refuse(talks.problem());
    arm_turn();
}

void client::flush()
{
    auto& talks = runtime_->talks;
    if (!errands_.empty()) {
        talks.plan().reopen();
        talks.on(sessions::event::wanted);
    }
    if (talks.is_denied())
        refuse(talks.problem());
    while (talks.ask()) {
        const auto next = errands_.take();
        if (!next)
            break;
        talks.note_use();
        next->start();
    }
    arm_turn();
}

remote::connection_plan::demand client::demand() const noexcept
{
    const bool under_way = errands_.under_way();
    return {.needed = under_way || !errands_.empty() || !sources_.empty() || runtime_->talks.in_use(),
        .under_way = under_way};
}

remote::connection_plan::surroundings client::surroundings() const noexcept
{
    const auto& run = *runtime_;
    return {.others_open = run.talks.closing(),
        .untold = errands_.under_way() || !errands_.empty(),
        .closing = !run.closing.empty()};
}

void client::opened()
{
    flush();
    watch_some();
}

void client::watch_some()
{
    auto* const by = runtime_->talks.ask();
    // Others have their turn in between.
    if (by && runtime_->watched.ask_some(*by))
        on_strand([](client& self) { self.watch_some(); });
}

void client::refuse(const failure_ptr& why)
{
    errands_.fail_waiting(why);
    // What was asked before has an answer of its own.
    if (!errands_.under_way())
        runtime_->talks.refused();
    arm_turn();
}

// Time: deadlines, idle sessions. One timer, and coarse.

void client::arm_turn()
{
    auto& run = *runtime_;
    const auto beside = surroundings();
    const bool is_calm = !beside.untold && !beside.closing && sources_.empty();
    const auto wanted =
        run.talks.plan().turns_again_in(demand(), beside, is_calm ? calm_pace : config_.deadlines().pace());
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
    const auto now = lease_clock::now();
    errands_.postpone(remote::deadlines::stood_still(due, now));
    errands_.end_overdue(now, run.talks.problem());
    run.watched.forget_unused();
    watch_some();
    if (!errands_.under_way())
        run.talks.on(sessions::event::told);
    close_if_idle();
    arm_turn();
}

// The end.

void client::close_if_idle()
{
    auto& run = *runtime_;
    if (run.talks.plan().out_of_time(lease_clock::now()))
        give_up_all();
    run.talks.on(sessions::event::turn);
    finish_close();
}

/// The time that a close was given is over: what is queued is not sent any more, and no answer is waited for.
void client::give_up_all()
{
    auto& run = *runtime_;
    const auto& trouble = run.talks.problem();
    const auto cause = trouble ? trouble->cause : error_code();
    errands_.fail_waiting(make_failure(errc::unavailable, "the adapter was closed before this could be sent", cause));
    errands_.fail_running(make_failure(errc::outcome_unknown, "the adapter was closed before this was answered"));
    if (run.talks.plan().open())
        run.talks.on(sessions::event::given_up);
}

void client::finish_close() noexcept
{
    auto& run = *runtime_;
    // Whoever hears of the close hears nothing more.
    if (run.closing.empty() || !run.talks.plan().finish_close(lease_clock::now(), surroundings()))
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
        run.talks.plan().close(saturating_add(lease_clock::now(), deadline));
        run.watched.forget_unused();
        self.close_if_idle();
        self.arm_turn();
    });
}

void client::retire() noexcept
{
    try {
        on_strand([](client& self) {
            self.runtime_->talks.plan().retire();
            self.close_if_idle();
            self.arm_turn();
        });
    } catch (...) {
        // Without memory the session stays until its idle timeout.
    }
}

void client::context_shutdown() noexcept
{
    std::unique_ptr<runtime> dead;
    {
        const std::lock_guard guard(mutex_);
        dead = std::move(runtime_);
    }
    errands_.drop_all();
    static_cast<void>(sources_.drop_all());
}

void client::context_forked() noexcept
{
    if (!runtime_)
        return;
    runtime_->talks.forked();
    // What is told to others is told from the strand, as ever.
    on_strand([](client& self) {
        const auto why = make_failure(errc::forked);
        self.errands_.fail_running(why);
        self.errands_.fail_waiting(why);
        wake_all(self.sources_.drop_all());
        self.arm_turn();
        self.finish_close();
    });
}

} // namespace colock::zookeeper::detail
