// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::redis::detail {

namespace {

/// Of operations that are looked at or ended, and of waits that are.
constexpr std::size_t most_per_turn = 256;

} // namespace

void client::postpone_all(lease_clock::duration by)
{
    for (auto* each : runtime_->in_flight)
        each->postpone(by);
    outbox_.postpone(by);
}

void client::end_overdue()
{
    auto& run = *runtime_;
    if (run.looking)
        return;
    const auto now = lease_clock::now();
    std::size_t room = most_per_turn;
    auto unanswered = take_unanswered(now, room);
    // Once a connection stands, what is queued does not stay so for long.
    const auto others = run.life.open() ? outbox::unwanted::stay : outbox::unwanted::go;
    auto unsent = outbox_.take_overdue(now, others, room);
    if (room == 0) {
        run.looking = true;
        asio::post(run.strand, [self = shared_from_this()] {
            self->runtime_->looking = false;
            self->end_overdue();
            self->arm_tick();
        });
    } else {
        outbox_.look_anew();
    }
    end_unsent(std::move(unsent));
    if (unanswered.empty())
        return;
    const auto why = remote::deadlines::overdue(delivery::unanswered, run.problem);
    for (auto& each : unanswered) {
        auto& ended = *each;
        ended.end(std::move(each), delivery::unanswered, why);
    }
}

std::vector<operation_ptr> client::take_unanswered(lease_clock::time_point now, std::size_t& room)
{
    std::vector<operation_ptr> taken;
    for (auto* each : runtime_->in_flight) {
        if (each->is_in_time(now))
            continue;
        if (room == 0)
            break;
        room -= std::min(room, each->size());
        std::ranges::move(each->take_overdue(now), std::back_inserter(taken));
    }
    return taken;
}

void client::end_unsent(std::vector<operation_ptr> overdue)
{
    if (overdue.empty())
        return;
    const auto why = remote::deadlines::overdue(delivery::unsent, runtime_->problem);
    for (auto& each : overdue) {
        auto& ended = *each;
        ended.end(std::move(each), delivery::unsent, why);
    }
}

void client::fail_queue(const failure_ptr& why)
{
    give_up_queue(why);
    if (!runtime_->giving_up)
        end_given_up();
}

void client::give_up_queue(const failure_ptr& why)
{
    auto& run = *runtime_;
    for (auto& each : outbox_.take_all())
        run.failed.push_back({std::move(each), why});
}

void client::end_given_up()
{
    auto& run = *runtime_;
    // Set before anybody is told: whoever is may give up more.
    run.giving_up = true;
    for (std::size_t room = most_per_turn; room > 0 && !run.failed.empty();) {
        auto [operations, why] = std::move(run.failed.front());
        run.failed.pop_front();
        room -= std::min(room, operations->size());
        fail(std::move(operations), why);
    }
    for (std::size_t room = most_per_turn; room > 0 && !run.wakes.empty(); --room) {
        auto ended = std::move(run.wakes.front());
        run.wakes.pop_front();
        ended(woken{});
    }
    run.giving_up = !run.failed.empty() || !run.wakes.empty();
    if (!run.giving_up)
        return;
    asio::post(run.strand, [self = shared_from_this()] {
        self->end_given_up();
        self->finish_close();
    });
}

void client::fail(batch_ptr failed, const failure_ptr& why)
{
    for (auto& owner : failed->take_all()) {
        auto& ended = *owner;
        ended.end(std::move(owner), delivery::unsent, why);
    }
    outbox_.recycle(std::move(failed));
}

} // namespace colock::redis::detail
