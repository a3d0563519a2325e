// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/session.hpp"
#include "redis/pipeline/completion_queue.hpp"
#include "redis/pipeline/send_queue.hpp"
#include "redis/pipeline/unsent_operations.hpp"
#include "remote/requests/client_base.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <vector>

namespace colock::redis::detail {

/// Sends what is in the outbox, some parts at a time, and tells of the answers; ends what has none in time.
///
/// Thread safety: none; belongs to the strand.
class pipeline
{
public:
    pipeline(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config, session& on,
        send_queue& unsent, flush_hints& hints, unsent_operations& dropped);

    void flush();

    /// Nothing is on its way to an answer, or to being told of one.
    [[nodiscard]] bool idle() const noexcept { return in_flight_.empty() && untold_.empty(); }
    [[nodiscard]] bool awaits_answers() const noexcept { return !in_flight_.empty(); }

    /// Moves every deadline.
    void postpone(lease_clock::duration by) noexcept;
    /// Some of it, and the rest in turns to come, as with `never_sent`.
    void end_overdue();
    /// In the child of a fork: what is under way is the parent's.
    void forked(const failure_ptr& why);

private:
    void send(batch_ptr next);
    void answered(batch_ptr sent, remote::connection_number on, const error_code& code);
    void tell();
    void tell_after(unsigned turns);
    [[nodiscard]] std::vector<operation_ptr> take_unanswered(lease_clock::time_point now, std::size_t& room);

    const asio::any_io_executor strand_;
    remote::client_base& owner_;
    const settings& config_;
    session& session_;
    send_queue& send_queue_;
    flush_hints& hints_;
    unsent_operations& never_sent_;
    std::vector<batch*> in_flight_;
    std::size_t operations_in_flight_ = 0;
    completion_queue untold_;
    /// The next of them is told by a handler that is posted already.
    bool telling_ = false;
    /// The look at what is overdue goes on in a handler that is posted already.
    bool looking_ = false;
};

} // namespace colock::redis::detail
