// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/pipeline.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Number of operations that take about as long to complete as one iteration of the event loop.
constexpr std::size_t operations_per_iteration = 8;

} // namespace

pipeline::pipeline(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    session& session, remote::request_queue& queue, fence_anchor& anchor)
    : strand_(strand), owner_(owner), config_(config), session_(session), queue_(queue), anchor_(anchor)
{
}

// Sending.

bool pipeline::can_start() const
{
    return next_ || (session_.plan().takes_requests() && batches_in_flight_ < batch_size::max_in_flight);
}

void pipeline::add(operation& operation)
{
    if (const auto& failure = session_.sorted_sets_refused(); failure && operation.needs_sorted_sets()) {
        queue_.on_ended(operation);
        operation.end(delivery::unsent, failure);
        return;
    }
    if (!next_) {
        max_next_size_ = size_.next(queue_.waiting_count() + 1, queue_.in_flight_count() - 1);
        next_time_ = lease_clock::now();
        if (spare_.empty()) {
            next_ = std::make_unique<batch>();
        } else {
            next_ = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    operation.raises_counter = operation.may_anchor() && !operation.asks && anchor_.is_due(operation.slot, next_time_);
    next_->add(operation);
    if (next_->size() >= max_next_size_)
        send();
}

void pipeline::send()
{
    if (!next_)
        return;
    auto next = std::move(next_);
    session_.note_use();
    const auto connection = session_.connection();
    const auto number = connection->number();
    next->set_connection(number);
    next->write_request(config_);
    auto& batch = *next;
    connection->exec(batch, [self = owner_.keep(*this), connection, next = std::move(next), number](
                                const error_code& error, std::size_t) mutable {
        self->batch_ended(std::move(next), number, error ? connection->translate_error(error) : error);
    });
    ++batches_in_flight_;
}

// Receiving answers.

void pipeline::batch_ended(batch_ptr batch, remote::connection_number number, const error_code& error)
{
    auto& plan = session_.plan();
    --batches_in_flight_;
    if (batch->refused_as_replica())
        plan.demote();
    if (error) {
        // Recorded before the operations end, which ask `lost` whether their requests may still arrive.
        session_.record_lost_requests(number);
        batch->finish(queue_);
        recycle(std::move(batch));
        queue_.fail_in_flight(make_failure(errc::outcome_unknown, "the connection was lost before the answer", error));
    } else {
        completions_.add(std::move(batch));
    }
    // If all operations of the batch have ended at their deadlines, the queue does not notice the end of the batch.
    queue_.notify_if_drained();
    if (batches_in_flight_ == 0 && plan.open() && plan.demoted())
        session_.connection()->close();
    else if (queue_.waiting_count() > 0)
        queue_.flush();
    complete_answered();
}

void pipeline::complete_answered()
{
    completions_.begin_round();
    while (!is_completion_posted_ && !completions_.empty()) {
        auto batch = completions_.take();
        const bool ends_round = completions_.is_round_full(size_.current()) && !is_idle();
        const bool is_round_long = completions_.taken_count() >= operations_per_iteration;
        batch->finish(queue_);
        recycle(std::move(batch));
        if (!ends_round)
            continue;
        // Two batches may have been answered together. The requests that follow from the first have to be sent before
        // the second is completed. Otherwise all new requests are sent together, and client and server work in turns,
        // not at the same time. The driver writes in a later handler, so the next batch is completed after it.
        is_completion_posted_ = true;
        asio::post(strand_, [self = owner_.keep(*this), is_round_long] {
            self->queue_.flush();
            self->complete_later(is_round_long ? 1 : 0);
        });
        queue_.expect_flush();
    }
    if (queue_.waiting_count() > 0)
        queue_.flush();
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

void pipeline::recycle(batch_ptr batch) noexcept
{
    batch->clear();
    if (spare_.size() < batch_size::max_in_flight)
        spare_.push_back(std::move(batch));
}

} // namespace colock::inline v0::redis::detail
