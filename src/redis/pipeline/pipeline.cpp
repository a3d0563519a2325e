// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/pipeline.hpp"

#include "redis/pipeline/exchange.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::redis::detail {

namespace {

/// To tell so many takes about as long as a turn of the event loop.
constexpr std::size_t worth_a_turn = 8;

void end_all(std::vector<operation_ptr> overdue, delivery how, const failure_ptr& problem)
{
    if (overdue.empty())
        return;
    const auto why = remote::deadlines::overdue(how, problem);
    for (auto& each : overdue) {
        auto& ended = *each;
        ended.end(std::move(each), how, why);
    }
}

} // namespace

pipeline::pipeline(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config, session& on,
    send_queue& unsent, flush_hints& hints, unsent_operations& dropped)
    : strand_(strand), owner_(owner), config_(config), session_(on), send_queue_(unsent), hints_(hints),
      never_sent_(dropped)
{
}

// Sending.

void pipeline::flush()
{
    hints_.is_due.store(false, std::memory_order_relaxed);
    session_.note_use();
    auto& plan = session_.plan();
    if ((plan.idle() || plan.closes()) && !send_queue_.empty()) {
        plan.reopen();
        session_.on(session::event::wanted);
    }
    while (plan.takes_requests() && in_flight_.size() < send_queue::most_in_flight) {
        auto next = send_queue_.next(operations_in_flight_ + untold_.operations());
        if (!next)
            break;
        if (next->empty())
            send_queue_.recycle(std::move(next));
        else
            send(std::move(next));
    }
    owner_.arm_turn();
}

void pipeline::send(batch_ptr next)
{
    const auto& server_connection = session_.connection();
    const auto number = server_connection->number();
    next->set_link(number);
    next->complete(config_.fence_key, config_.probe_key);
    auto* const reading = next.get();
    in_flight_.push_back(reading);
    operations_in_flight_ += reading->size();
    server_connection->exec(reading->request(), reader_of(*reading, *server_connection),
        [self = owner_.keep(*this), on = server_connection, sent = std::move(next), number](const error_code& code,
            std::size_t) mutable { self->answered(std::move(sent), number, code ? on->loss(code) : code); });
}

// Answers.

void pipeline::answered(batch_ptr sent, remote::connection_number on, const error_code& code)
{
    if (session_.lost().is_from_parent(on)) {
        never_sent_.end(std::move(sent), make_failure(errc::forked));
        return;
    }
    auto& plan = session_.plan();
    std::erase(in_flight_, sent.get());
    operations_in_flight_ -= sent->size();
    if (sent->refused_as_replica())
        plan.demote();
    if (code) {
        // Before anyone is told: what is unanswered may arrive late until that connection is known to be dead.
        session_.lose_requests(on);
        sent->finish(make_failure(errc::outcome_unknown, "the connection was lost before the answer", code));
        send_queue_.recycle(std::move(sent));
    } else {
        untold_.add(std::move(sent));
    }

    if (in_flight_.empty() && plan.ending())
        session_.on(session::event::told);
    else if (in_flight_.empty() && plan.demoted())
        session_.connection()->close();
    else if (!send_queue_.empty())
        flush();
    tell();
}

void pipeline::tell()
{
    untold_.begin_turn();
    while (!telling_ && !untold_.empty()) {
        auto told = untold_.take();
        const bool apart = untold_.is_enough(send_queue_.part()) && !idle();
        const bool takes_time = untold_.told() >= worth_a_turn;
        told->finish(nullptr);
        send_queue_.recycle(std::move(told));
        if (!apart)
            continue;
        // Two parts may have been answered together. What follows the first is sent before the second is told, or
        // they would stay together, with the server idle while we work and the other way round. The driver writes a
        // turn of the strand after it was asked to.
        telling_ = true;
        asio::post(strand_, [self = owner_.keep(*this), takes_time] {
            self->flush();
            self->tell_after(takes_time ? 1 : 0);
        });
        hints_.is_due.store(true, std::memory_order_relaxed);
    }
    if (!send_queue_.empty())
        flush();
    else if (session_.plan().open() && idle() && !telling_)
        hints_.one_at_a_time.store(true, std::memory_order_relaxed);
}

void pipeline::tell_after(unsigned turns)
{
    asio::post(strand_, [self = owner_.keep(*this), turns] {
        if (turns > 0) {
            self->tell_after(turns - 1);
        } else {
            self->telling_ = false;
            self->tell();
        }
    });
}

// What ends without an answer.

void pipeline::postpone(lease_clock::duration by) noexcept
{
    for (auto* each : in_flight_)
        each->postpone(by);
    send_queue_.postpone(by);
}

void pipeline::end_overdue()
{
    if (looking_)
        return;
    const auto now = lease_clock::now();
    std::size_t room = most_per_turn;
    auto unanswered = take_unanswered(now, room);
    // Once a connection stands, what is queued does not stay so for long.
    const auto others = session_.plan().open() ? send_queue::unwanted::stay : send_queue::unwanted::go;
    auto unsent = send_queue_.take_overdue(now, others, room);
    if (room == 0) {
        looking_ = true;
        asio::post(strand_, [self = owner_.keep(*this)] {
            self->looking_ = false;
            self->end_overdue();
            self->owner_.arm_turn();
        });
    } else {
        send_queue_.look_anew();
    }
    end_all(std::move(unsent), delivery::unsent, session_.problem());
    end_all(std::move(unanswered), delivery::unanswered, session_.problem());
}

std::vector<operation_ptr> pipeline::take_unanswered(lease_clock::time_point now, std::size_t& room)
{
    std::vector<operation_ptr> taken;
    for (auto* each : in_flight_) {
        if (each->is_in_time(now))
            continue;
        if (room == 0)
            break;
        room -= std::min(room, each->size());
        std::ranges::move(each->take_overdue(now), std::back_inserter(taken));
    }
    return taken;
}

void pipeline::forked(const failure_ptr& why)
{
    in_flight_.clear();
    operations_in_flight_ = 0;
    never_sent_.add(untold_.take_all(), why);
}

} // namespace colock::redis::detail
