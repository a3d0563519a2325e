// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;

/// The load travels in parts, so that the server works on some while we do on others. What waits in our queue was
/// certainly not sent, so more parts than that would help nobody.
constexpr std::size_t most_in_flight = 8;
constexpr std::size_t largest_part = 128;

/// How many of the operations under way travel together. Each part costs both sides a wake-up and some system calls,
/// which shows in CPU time; too few parts leave both sides waiting for each other, which shows in the rate. Measured
/// (docs/benchmarks.md): a small load goes fastest in many parts, and the larger it is, the less they gain.
constexpr std::size_t part_of(std::size_t load)
{
    constexpr std::size_t worthwhile = 32;
    const auto split = [load](std::size_t parts) { return (load + parts - 1) / parts; };
    if (load < 6)
        return 2;
    if (load <= 24)
        return split(8);
    if (load <= 56)
        return split(4);
    return std::clamp(split(4), std::min(split(2), worthwhile), largest_part);
}

/// To tell so many takes about as long as a turn of the event loop.
constexpr std::size_t worth_a_turn = 8;
constexpr std::size_t most_spare = most_in_flight;
constexpr lease_clock::duration anchor_interval = 1s;
/// What "at once" means for a connection: whoever was just answered may have the next request in hand.
constexpr std::chrono::milliseconds at_once = 10ms;
/// For so long a connection goes on being made for which nobody waits any more.
constexpr lease_clock::duration unwanted_connecting = 1s;
/// A tick that is later than this did not come in time because nobody ran the event loop.
constexpr lease_clock::duration most_late = 250ms;
constexpr std::size_t most_unproven = 1024;

} // namespace

client::client(detail::settings checked, std::weak_ptr<client_events> events)
    : config_(std::move(checked)), events_(std::move(events))
{
    channels_.poll(config_.plain());
}

client::~client() = default;

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings checked, std::weak_ptr<client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked), std::move(events));
    made->runtime_ = std::make_unique<runtime>(executor);
    colock::detail::context_service::join(executor, made);
    return made;
}

// The queue.

client::batch_ptr client::fresh_batch()
{
    if (spare_.empty())
        return std::make_unique<batch>();
    auto reused = std::move(spare_.back());
    spare_.pop_back();
    return reused;
}

void client::submit(operation_ptr added)
{
    if (added->deadline == lease_clock::time_point{})
        added->deadline = lease_clock::now() + config_.operation_timeout;
    bool first = false;
    {
        const std::lock_guard guard(mutex_);
        if (!runtime_)
            return;
        first = queue_.empty();
        // A burst is more than the load has been, and goes in parts that grow with it.
        if (first || queue_.back()->size() >= std::clamp(queued_ / 2, part_of(load_), largest_part))
            queue_.push_back(fresh_batch());
        queue_.back()->add(std::move(added));
        ++queued_;
    }
    // Whoever finds the queue filled has been preceded by one who has posted, or whose batch in flight will look again.
    if (!first || flush_due_.load(std::memory_order_relaxed))
        return;
    const auto go_on = [](client& self) { self.flush(); };
    if (one_at_a_time_.exchange(false, std::memory_order_relaxed))
        on_strand(go_on, at_once_if_possible);
    else
        on_strand(go_on);
}

client::batch_ptr client::next_batch(std::size_t unqueued)
{
    const std::lock_guard guard(mutex_);
    if (queue_.empty())
        return nullptr;
    auto next = std::move(queue_.front());
    queue_.pop_front();
    load_ = std::max(queued_ + unqueued, load_ - (load_ + 63) / 64);
    queued_ -= next->size();
    return next;
}

void client::recycle(batch_ptr used) noexcept
{
    used->clear();
    const std::lock_guard guard(mutex_);
    if (spare_.size() < most_spare)
        spare_.push_back(std::move(used));
}

bool client::queue_empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return queue_.empty();
}

bool client::anchor_due(lease_clock::time_point now) noexcept
{
    auto last = anchored_.load(std::memory_order_relaxed);
    return now.time_since_epoch().count() - last >= anchor_interval.count() &&
           anchored_.compare_exchange_strong(last, now.time_since_epoch().count(), std::memory_order_relaxed);
}

void client::push_anchor(boost::redis::request& request, script::form sent) const
{
    scripts::get().anchor.push(request, sent, 1, config_.fence_key, highest_fence_);
}

bool client::settled(std::uint64_t number) const noexcept
{
    return number > runtime_->forgotten && !runtime_->unproven_links.contains(number);
}

// Sending.

void client::flush()
{
    auto& run = *runtime_;
    flush_due_.store(false, std::memory_order_relaxed);
    run.used_since_tick = true;
    if ((run.now == runtime::phase::idle || run.closes) && !queue_empty()) {
        run.closes = false;
        if (run.now == runtime::phase::idle)
            connect();
    }
    while (run.now == runtime::phase::open && !run.draining && run.in_flight.size() < most_in_flight) {
        auto unqueued = run.operations_in_flight;
        for (const auto& each : run.answers)
            unqueued += each->size();
        auto next = next_batch(unqueued);
        if (!next)
            break;
        if (next->empty())
            recycle(std::move(next));
        else
            send(std::move(next));
    }
    arm_tick();
}

void client::send(batch_ptr next)
{
    auto& run = *runtime_;
    const auto number = run.commands->number();
    next->set_link(number);
    next->complete(config_.fence_key, config_.probe_key);
    auto* const reading = next.get();
    run.in_flight.push_back(reading);
    run.operations_in_flight += reading->size();
    run.commands->exec(reading->request(), exchange::adapter_for(*reading, *run.commands),
        [self = shared_from_this(), on = run.commands, sent = std::move(next), number](
            const error_code& code, std::size_t) mutable { self->answered(std::move(sent), number, code); });
}

void client::answered(batch_ptr sent, std::uint64_t number, const error_code& code)
{
    auto& run = *runtime_;
    if (number <= run.inherited) {
        fail(std::move(sent), make_failure(errc::forked));
        return;
    }
    std::erase(run.in_flight, sent.get());
    run.operations_in_flight -= sent->size();
    if (sent->refused_as_replica())
        run.draining = true;
    if (code) {
        // Before anyone is told: what is unanswered may arrive late until that connection is known to be dead.
        run.unproven_links.try_emplace(number, runtime::unproven{run.client_id, run.run_id});
        if (run.unproven_links.size() > most_unproven) {
            run.forgotten = run.unproven_links.begin()->first;
            run.unproven_links.erase(run.unproven_links.begin());
        }
        sent->finish(make_failure(errc::outcome_unknown, "the connection was lost before the answer", code));
        recycle(std::move(sent));
    } else {
        run.answers.push_back(std::move(sent));
    }

    if (run.now == runtime::phase::ending)
        after_loss();
    else if (run.draining && run.in_flight.empty())
        run.commands->close();
    else if (!queue_empty())
        flush();
    tell();
}

void client::tell()
{
    auto& run = *runtime_;
    while (!run.telling && !run.answers.empty()) {
        auto told = std::move(run.answers.front());
        run.answers.pop_front();
        // A part that is smaller than the load would have it is told with the next one, so that they grow together.
        const bool apart = told->size() >= part_of(load_) && (!run.answers.empty() || !run.in_flight.empty());
        const bool takes_time = told->size() >= worth_a_turn;
        told->finish(nullptr);
        recycle(std::move(told));
        if (!apart)
            continue;
        // Two parts may have been answered together. What follows the first is sent before the second is told, or
        // they would stay together, with the server idle while we work and the other way round. The driver writes a
        // turn of the strand after it was asked to.
        run.telling = true;
        asio::post(run.strand, [self = shared_from_this(), takes_time] {
            self->flush();
            self->tell_after(takes_time ? 1 : 0);
        });
        flush_due_.store(true, std::memory_order_relaxed);
    }
    if (!queue_empty())
        flush();
    else if (run.now == runtime::phase::open && run.in_flight.empty() && run.answers.empty() && !run.telling)
        one_at_a_time_.store(true, std::memory_order_relaxed);
}

void client::tell_after(unsigned turns)
{
    asio::post(runtime_->strand, [self = shared_from_this(), turns] {
        if (turns > 0) {
            self->tell_after(turns - 1);
        } else {
            self->runtime_->telling = false;
            self->tell();
        }
    });
}

// Time: deadlines, polls, unused channels, idle connections. One timer, and coarse.

bool client::needed() const noexcept
{
    return !queue_empty() || !runtime_->in_flight.empty() || !runtime_->answers.empty() || watched();
}

void client::arm_tick()
{
    auto& run = *runtime_;
    const bool working = needed();
    const bool closing = run.closes || !run.closing.empty();
    if (!working && run.now == runtime::phase::idle && !run.messages && run.closing.empty()) {
        // The context may run out of work now, and not when the connection would have been idle for long enough.
        if (std::exchange(run.tick_at, lease_clock::time_point::max()) != lease_clock::time_point::max())
            run.ticker.cancel();
        return;
    }
    lease_clock::duration delay;
    if (working || closing) {
        delay = std::clamp<lease_clock::duration>(config_.operation_timeout / 20, 5ms, 100ms);
        if (run.polls || config_.plain())
            delay = std::min<lease_clock::duration>(delay, config_.poll_interval);
    } else if (run.now != runtime::phase::open && run.now != runtime::phase::idle) {
        delay = unwanted_connecting;
    } else if (config_.keeps_connection() && !retired_) {
        return;
    } else {
        delay = retired_ ? at_once : std::clamp(config_.idle_timeout, at_once, 60'000ms);
    }
    // An earlier tick will do, and a little later one.
    if (run.tick_at != lease_clock::time_point::max() && run.tick_delay <= delay)
        return;
    const auto at = lease_clock::now() + delay;
    if (run.tick_at <= at + 5ms)
        return;
    run.tick_at = at;
    run.tick_delay = delay;
    run.ticker.expires_after(delay);
    run.ticker.async_wait([self = shared_from_this()](const error_code& code) {
        if (code)
            return;
        self->tick(std::exchange(self->runtime_->tick_at, lease_clock::time_point::max()));
    });
}

void client::tick(lease_clock::time_point due)
{
    auto& run = *runtime_;
    const auto now = lease_clock::now();
    // What was answered while the event loop stood still has not been read yet.
    const auto stood_still = now - due > most_late ? now - due : lease_clock::duration::zero();
    if (std::exchange(run.used_since_tick, false) || !run.in_flight.empty())
        run.used = now;

    postpone_all(stood_still);
    end_overdue();
    sweep_channels();

    close_if_idle();
    arm_tick();
}

void client::close_if_idle()
{
    auto& run = *runtime_;
    const auto now = lease_clock::now();
    if (!watched()) {
        if (run.messages)
            run.messages->close();
        if (run.message_retry_pending)
            run.message_retry.cancel();
    }
    if (run.close_by <= now)
        give_up_all();
    if (!needed()) {
        // Nothing stands that could be kept. One that is being made may be needed by whoever comes next.
        const bool wanted = !run.closes && !retired_ && now - run.used < unwanted_connecting;
        if (run.now == runtime::phase::waiting || (run.now == runtime::phase::connecting && !wanted))
            stop_connecting();
        const bool due = retired_ || run.closes ||
                         (!config_.keeps_connection() && now - run.used >= std::max(config_.idle_timeout, at_once));
        if (due)
            begin_close();
    }
    finish_close();
}

void client::stop_connecting()
{
    auto& run = *runtime_;
    run.retry.cancel();
    run.now = runtime::phase::idle;
    if (!run.commands)
        return;
    run.commands->close();
    asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
}

/// The time that a close was given is over: what is queued is not sent any more, and no answer is waited for.
void client::give_up_all()
{
    auto& run = *runtime_;
    fail_queue(make_failure(errc::unavailable, "the adapter was closed before this could be sent",
        run.problem ? run.problem->cause : error_code()));
    if (run.now != runtime::phase::open || run.in_flight.empty())
        return;
    run.given_up = true;
    run.commands->close();
}

void client::begin_close()
{
    auto& run = *runtime_;
    if (run.messages)
        run.messages->close();
    if (run.now == runtime::phase::open && run.commands && run.in_flight.empty()) {
        // No loss: nothing is under way, and nobody is told.
        run.now = runtime::phase::idle;
        run.commands->close();
        asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
    }
}

void client::finish_close() noexcept
{
    auto& run = *runtime_;
    if (run.closing.empty())
        return;
    // Whoever hears of the close hears nothing more.
    if (!run.failed.empty())
        return;
    const bool all_closed = run.now == runtime::phase::idle && !run.messages;
    if (!all_closed && (run.close_by > lease_clock::now() || !run.in_flight.empty() || !run.answers.empty()))
        return;
    run.close_by = lease_clock::time_point::max();
    for (auto& each : std::exchange(run.closing, {}))
        each(closed{});
}

void client::close(lease_clock::duration deadline, completion<closed> done)
{
    on_strand([deadline, done = std::move(done)](client& self) mutable {
        auto& run = *self.runtime_;
        run.closing.push_back(std::move(done));
        run.closes = true;
        const auto now = lease_clock::now();
        run.close_by = std::min(run.close_by, saturating_add(now, deadline));
        self.sweep_channels();
        self.close_if_idle();
        self.arm_tick();
    });
}

void client::retire() noexcept
{
    retired_ = true;
    try {
        on_strand([](client& self) {
            self.close_if_idle();
            self.arm_tick();
        });
    } catch (...) {
        // Without memory the connection stays until its idle timeout.
    }
}

void client::context_shutdown() noexcept
{
    std::unique_ptr<runtime> dead;
    std::deque<batch_ptr> queued;
    {
        const std::lock_guard guard(mutex_);
        dead = std::move(runtime_);
        queued.swap(queue_);
    }
    static_cast<void>(channels_.drop_all());
}

void client::context_forked() noexcept
{
    if (!runtime_)
        return;
    // At once, and not on the strand: what is queued there would come first, and write to connections that the parent
    // goes on using. The child leaves them without a word, and kills nothing.
    auto& run = *runtime_;
    run.inherited = run.numbers;
    for (auto* const each : {&run.commands, &run.messages}) {
        if (!*each)
            continue;
        (*each)->disown();
        asio::post(run.strand, [old = std::exchange(*each, nullptr)] {});
    }
    run.now = runtime::phase::idle;
    run.draining = false;
    run.was_ready = false;
    run.announced_loss = false;
    run.messages_ready = false;
    run.unproven_links.clear();
    run.in_flight.clear();
    run.operations_in_flight = 0;

    const auto why = make_failure(errc::forked);
    for (auto& each : std::exchange(run.answers, {}))
        run.failed.push_back({std::move(each), why});
    give_up_queue(why);
    std::ranges::move(channels_.drop_all(), std::back_inserter(run.wakes));
    // What is told to others is told from the strand, as ever.
    on_strand([](client& self) {
        self.end_given_up();
        self.arm_tick();
        self.finish_close();
    });
}

} // namespace colock::redis::detail
