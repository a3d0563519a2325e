// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/completion_queue.hpp"
#include "redis/connection/session.hpp"
#include "redis/pipeline/send_queue.hpp"
#include "redis/pipeline/unsent_operations.hpp"
#include "remote/requests/client_base.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Sends the batches of the send queue, a limited number at a time, completes answered operations, and ends operations
/// that reach their deadlines.
///
/// Thread safety: none; belongs to the strand.
class pipeline
{
public:
    pipeline(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config, session& on,
        send_queue& queue, flush_hints& hints);

    /// Sends queued batches until the limit of batches in flight is reached. Requests a connection if there is none.
    void flush();

    /// True if no operation is in flight or waits for its completion.
    [[nodiscard]] bool idle() const noexcept { return in_flight_.empty() && completions_.empty(); }
    [[nodiscard]] bool awaits_answers() const noexcept { return !in_flight_.empty(); }

    /// Postpones all deadlines.
    void postpone(lease_clock::duration by) noexcept;
    /// Ends some of the overdue operations. Posts a handler for the rest, as with `unsent_operations`.
    void end_overdue();

private:
    void send(batch_ptr next);
    void answered(batch_ptr sent, remote::connection_number on, const error_code& code);
    void complete_answered();
    /// Continues to complete batches in a handler that runs after `iterations` further iterations of the event loop.
    void complete_later(unsigned iterations);
    [[nodiscard]] std::vector<operation_ptr> take_unanswered(lease_clock::time_point now, std::size_t& budget);

    const asio::any_io_executor strand_;
    remote::client_base& owner_;
    const settings& config_;
    session& session_;
    send_queue& send_queue_;
    flush_hints& hints_;
    std::vector<batch*> in_flight_;
    std::size_t operations_in_flight_ = 0;
    completion_queue completions_;
    /// True while a handler is posted that completes the next batch.
    bool is_completion_posted_ = false;
    /// True while a handler is posted that continues with overdue operations.
    bool is_overdue_check_posted_ = false;
};

} // namespace colock::inline v0::redis::detail
