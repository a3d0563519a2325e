// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/exchange.hpp"
#include "redis/runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;

/// To tell so many takes about as long as a turn of the event loop.
constexpr std::size_t worth_a_turn = 8;

} // namespace

client::client(detail::settings checked) : config_(std::move(checked))
{
    sources_.poll(config_.plain());
}

client::~client() = default;

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings checked, std::weak_ptr<client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked));
    made->runtime_ = std::make_unique<runtime>(executor, made->config_, std::move(events));
    join_context(executor, made);
    return made;
}

// The queue.

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
    if (!first || flush_due_.load(std::memory_order_relaxed))
        return;
    const auto go_on = [](client& self) { self.flush(); };
    if (one_at_a_time_.exchange(false, std::memory_order_relaxed))
        on_strand(go_on, at_once_if_possible);
    else
        on_strand(go_on);
}

const remote::lost_requests& client::lost() const noexcept
{
    return runtime_->lost;
}

// Sending.

void client::flush()
{
    auto& run = *runtime_;
    flush_due_.store(false, std::memory_order_relaxed);
    run.used_since_tick = true;
    if ((run.life.idle() || run.life.closes()) && !outbox_.empty()) {
        run.life.reopen();
        carry_out(decide(remote::connection_plan::event::wanted));
    }
    while (run.life.takes_requests() && run.in_flight.size() < outbox::most_in_flight) {
        auto unqueued = run.operations_in_flight;
        for (const auto& each : run.answers)
            unqueued += each->size();
        auto next = outbox_.next(unqueued);
        if (!next)
            break;
        if (next->empty())
            outbox_.recycle(std::move(next));
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
    run.commands->exec(reading->request(), reader_of(*reading, *run.commands),
        [self = shared_from_this(), on = run.commands, sent = std::move(next), number](
            const error_code& code, std::size_t) mutable { self->answered(std::move(sent), number, code); });
}

void client::answered(batch_ptr sent, std::uint64_t number, const error_code& code)
{
    auto& run = *runtime_;
    if (run.lost.inherited(number)) {
        fail(std::move(sent), make_failure(errc::forked));
        return;
    }
    std::erase(run.in_flight, sent.get());
    run.operations_in_flight -= sent->size();
    if (sent->refused_as_replica())
        run.life.demote();
    if (code) {
        // Before anyone is told: what is unanswered may arrive late until that connection is known to be dead.
        run.lost.add(number, run.known_by);
        sent->finish(make_failure(errc::outcome_unknown, "the connection was lost before the answer", code));
        outbox_.recycle(std::move(sent));
    } else {
        run.answers.push_back(std::move(sent));
    }

    if (run.in_flight.empty() && run.life.ending())
        carry_out(decide(remote::connection_plan::event::told));
    else if (run.in_flight.empty() && run.life.demoted())
        run.commands->close();
    else if (!outbox_.empty())
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
        const bool apart = told->size() >= outbox_.part() && (!run.answers.empty() || !run.in_flight.empty());
        const bool takes_time = told->size() >= worth_a_turn;
        told->finish(nullptr);
        outbox_.recycle(std::move(told));
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
    if (!outbox_.empty())
        flush();
    else if (run.life.open() && run.in_flight.empty() && run.answers.empty() && !run.telling)
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
    return !outbox_.empty() || !runtime_->in_flight.empty() || !runtime_->answers.empty() || watched();
}

remote::connection_plan::demand client::demand() const noexcept
{
    return {.needed = needed(), .under_way = !runtime_->in_flight.empty()};
}

remote::connection_plan::surroundings client::surroundings() const noexcept
{
    const auto& run = *runtime_;
    return {.others_open = run.messages != nullptr,
        .untold = !run.in_flight.empty() || !run.answers.empty(),
        .closing = !run.closing.empty()};
}

void client::arm_tick()
{
    auto& run = *runtime_;
    auto pace = config_.deadlines().pace();
    if (run.listening.polls() || config_.plain())
        pace = std::min<lease_clock::duration>(pace, config_.poll_interval);
    const auto wanted = run.life.turns_again_in(demand(), surroundings(), pace);
    if (!wanted) {
        if (std::exchange(run.tick_at, lease_clock::time_point::max()) != lease_clock::time_point::max())
            run.ticker.cancel();
        return;
    }
    const auto delay = *wanted;
    if (delay == lease_clock::duration::max())
        return;
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
    postpone_all(remote::deadlines::stood_still(due, lease_clock::now()));
    end_overdue();
    sweep_channels();
    close_if_idle();
    arm_tick();
}

void client::close_if_idle()
{
    auto& run = *runtime_;
    carry_out(decide(remote::listening_plan::event::turn));
    const auto now = lease_clock::now();
    if (run.life.out_of_time(now))
        give_up_all();
    auto by = demand();
    by.used = std::exchange(run.used_since_tick, false);
    carry_out(run.life.next(now, remote::connection_plan::event::turn, by));
    finish_close();
}

/// The time that a close was given is over: what is queued is not sent any more, and no answer is waited for.
void client::give_up_all()
{
    auto& run = *runtime_;
    fail_queue(make_failure(errc::unavailable, "the adapter was closed before this could be sent",
        run.problem ? run.problem->cause : error_code()));
    if (!run.life.open() || run.in_flight.empty())
        return;
    carry_out(decide(remote::connection_plan::event::given_up));
    run.commands->close();
}

void client::finish_close() noexcept
{
    auto& run = *runtime_;
    // Whoever hears of the close hears nothing more.
    if (run.closing.empty() || !run.failed.empty() || !run.life.finish_close(lease_clock::now(), surroundings()))
        return;
    auto told = std::exchange(run.closing, {});
    // The turns that it took are taken no more.
    arm_tick();
    for (auto& each : told)
        each(closed{});
}

void client::close(lease_clock::duration deadline, completion<closed> done)
{
    on_strand([deadline, done = std::move(done)](client& self) mutable {
        auto& run = *self.runtime_;
        run.closing.push_back(std::move(done));
        run.life.close(saturating_add(lease_clock::now(), deadline));
        self.sweep_channels();
        self.close_if_idle();
        self.arm_tick();
    });
}

void client::retire() noexcept
{
    try {
        on_strand([](client& self) {
            self.runtime_->life.retire();
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
    run.lost.inherit(run.made.last());
    for (auto* const each : {&run.commands, &run.messages}) {
        if (!*each)
            continue;
        (*each)->disown();
        run.made.drop(*each);
    }
    if (const auto old = std::exchange(run.search, nullptr))
        old->disown();
    if (const auto old = std::exchange(run.greeter, nullptr))
        old->stop();
    carry_out(decide(remote::connection_plan::event::forked));
    carry_out(decide(remote::listening_plan::event::forked));
    run.in_flight.clear();
    run.operations_in_flight = 0;

    const auto why = make_failure(errc::forked);
    for (auto& each : std::exchange(run.answers, {}))
        run.failed.push_back({std::move(each), why});
    give_up_queue(why);
    std::ranges::move(sources_.drop_all(), std::back_inserter(run.wakes));
    // What is told to others is told from the strand, as ever.
    on_strand([](client& self) {
        self.end_given_up();
        self.arm_tick();
        self.finish_close();
    });
}

} // namespace colock::redis::detail
