// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/pipeline.hpp"

#include "redis/connection/exchange.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Number of operations that take about as long to complete as one iteration of the event loop.
constexpr std::size_t operations_per_iteration = 8;

void end_all(std::vector<operation_ptr> ended, delivery how, const failure_ptr& why)
{
    for (auto& each : ended) {
        auto& target = *each;
        target.end(std::move(each), how, why);
    }
}

} // namespace

pipeline::pipeline(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config, session& on,
    send_queue& queue, flush_hints& hints)
    : strand_(strand), owner_(owner), config_(config), session_(on), send_queue_(queue), hints_(hints)
{
}

// Sending.

void pipeline::flush()
{
    hints_.is_due.store(false, std::memory_order_relaxed);
    session_.note_use();
    auto& plan = session_.plan();
    if (plan.idle() && !send_queue_.empty())
        session_.on(session::event::wanted);
    while (plan.takes_requests() && in_flight_.size() < send_queue::max_in_flight) {
        auto next = send_queue_.next(operations_in_flight_ + completions_.operation_count());
        if (!next)
            break;
        if (next->empty())
            send_queue_.recycle(std::move(next));
        else
            send(std::move(next));
    }
    owner_.arm_timer();
}

void pipeline::send(batch_ptr next)
{
    if (const auto refused = session_.sorted_sets_refused()) {
        end_all(next->take_users_of_sorted_sets(), delivery::unsent, refused);
        next->remove_empty_slots();
        if (next->empty()) {
            send_queue_.recycle(std::move(next));
            return;
        }
    }
    const auto server_connection = session_.connection();
    const auto number = server_connection->number();
    next->set_connection(number);
    next->write_request(config_.fence_key, config_.probe_key);
    auto* const sending = next.get();
    in_flight_.push_back(sending);
    operations_in_flight_ += sending->size();
    server_connection->exec(sending->request(), reader_of(*sending, *server_connection),
        [self = owner_.keep(*this), on = server_connection, sent = std::move(next), number](const error_code& code,
            std::size_t) mutable { self->answered(std::move(sent), number, code ? on->translate_error(code) : code); });
}

// Receiving answers.

void pipeline::answered(batch_ptr sent, remote::connection_number on, const error_code& code)
{
    auto& plan = session_.plan();
    std::erase(in_flight_, sent.get());
    operations_in_flight_ -= sent->size();
    if (sent->refused_as_replica())
        plan.demote();
    if (code) {
        // The requests are recorded as lost before their operations end, because they may still arrive until the
        // connection is known to be dead.
        session_.lose_requests(on);
        sent->finish(make_failure(errc::outcome_unknown, "the connection was lost before the answer", code));
        send_queue_.recycle(std::move(sent));
    } else {
        completions_.add(std::move(sent));
    }

    if (in_flight_.empty() && plan.ending())
        session_.on(session::event::drained);
    else if (in_flight_.empty() && plan.demoted())
        session_.connection()->close();
    else if (!send_queue_.empty())
        flush();
    complete_answered();
}

void pipeline::complete_answered()
{
    completions_.begin_round();
    while (!is_completion_posted_ && !completions_.empty()) {
        auto completed = completions_.take();
        const bool ends_round = completions_.is_round_full(send_queue_.batch_size()) && !idle();
        const bool is_round_long = completions_.taken_count() >= operations_per_iteration;
        completed->finish(nullptr);
        send_queue_.recycle(std::move(completed));
        if (!ends_round)
            continue;
        // Two batches may have been answered together. The requests that follow from the first have to be sent before
        // the second is completed. Otherwise the requests that follow from both are sent together, and client and
        // server keep waiting for each other. The driver writes in a handler that runs after the request is submitted,
        // so this waits for that handler.
        is_completion_posted_ = true;
        asio::post(strand_, [self = owner_.keep(*this), is_round_long] {
            self->flush();
            self->complete_later(is_round_long ? 1 : 0);
        });
        hints_.is_due.store(true, std::memory_order_relaxed);
    }
    if (!send_queue_.empty())
        flush();
    else if (session_.plan().open() && idle() && !is_completion_posted_)
        hints_.is_idle.store(true, std::memory_order_relaxed);
}

void pipeline::complete_later(unsigned iterations)
{
    asio::post(strand_, [self = owner_.keep(*this), iterations] {
        if (iterations > 0) {
            self->complete_later(iterations - 1);
        } else {
            self->is_completion_posted_ = false;
            self->complete_answered();
        }
    });
}

// Operations that end without an answer.

void pipeline::postpone(lease_clock::duration by) noexcept
{
    for (auto* each : in_flight_)
        each->postpone(by);
    send_queue_.postpone(by);
}

void pipeline::end_overdue()
{
    if (is_overdue_check_posted_)
        return;
    const auto now = lease_clock::now();
    std::size_t budget = max_per_handler;
    auto unanswered = take_unanswered(now, budget);
    // While a connection is open, queued operations are sent soon, so unwanted ones need not be removed.
    const auto unwanted =
        session_.plan().open() ? send_queue::unwanted_policy::keep : send_queue::unwanted_policy::remove;
    auto unsent = send_queue_.take_overdue(now, unwanted, budget);
    if (budget == 0) {
        is_overdue_check_posted_ = true;
        asio::post(strand_, [self = owner_.keep(*this)] {
            self->is_overdue_check_posted_ = false;
            self->end_overdue();
            self->owner_.arm_timer();
        });
    } else {
        send_queue_.restart_overdue_check();
    }
    const auto end_with_reason = [this](std::vector<operation_ptr> overdue, delivery how) {
        if (!overdue.empty())
            end_all(std::move(overdue), how, remote::deadlines::overdue_failure(how, session_.problem()));
    };
    end_with_reason(std::move(unsent), delivery::unsent);
    end_with_reason(std::move(unanswered), delivery::unanswered);
}

std::vector<operation_ptr> pipeline::take_unanswered(lease_clock::time_point now, std::size_t& budget)
{
    std::vector<operation_ptr> taken;
    for (auto* each : in_flight_) {
        if (each->is_in_time(now))
            continue;
        if (budget == 0)
            break;
        budget -= std::min(budget, each->size());
        std::ranges::move(each->take_overdue(now), std::back_inserter(taken));
    }
    return taken;
}

} // namespace colock::inline v0::redis::detail
