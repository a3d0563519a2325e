// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/completion_queue.hpp"
#include "redis/connection/session.hpp"
#include "redis/pipeline/batch_size.hpp"
#include "redis/scripts/fence_anchor.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/request_queue.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Sends started operations in batches, and completes answered operations.
///
/// Thread safety: none; belongs to the strand.
class pipeline
{
public:
    pipeline(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config, session& session,
        remote::request_queue& queue, fence_anchor& anchor);

    /// Returns whether an operation can be started.
    [[nodiscard]] bool can_start() const;
    /// Adds a started operation to the next batch, and sends the batch if it is full. Ends an operation that the server
    /// would refuse.
    void add(operation& operation);
    /// Sends the next batch, if it has any operation.
    void send();
    [[nodiscard]] bool has_in_flight() const noexcept { return batches_in_flight_ > 0; }

private:
    void batch_ended(batch_ptr batch, remote::connection_number number, const error_code& error);
    /// True if no batch is in flight or waits for its completion.
    [[nodiscard]] bool is_idle() const noexcept { return batches_in_flight_ == 0 && completions_.empty(); }
    void complete_answered();
    /// Continues to complete batches in a handler that runs after `iterations` further iterations of the event loop.
    void complete_later(unsigned iterations);
    void recycle(batch_ptr batch) noexcept;

    const asio::any_io_executor strand_;
    remote::client_base& owner_;
    const settings& config_;
    session& session_;
    remote::request_queue& queue_;
    fence_anchor& anchor_;
    batch_size size_;
    /// Operations that were started and are sent in the next batch; null if there are none.
    batch_ptr next_;
    std::size_t max_next_size_ = 0;
    lease_clock::time_point next_time_{};
    std::size_t batches_in_flight_ = 0;
    completion_queue completions_;
    /// True while a handler is posted that completes the next batch.
    bool is_completion_posted_ = false;
    /// Completed batches, whose memory is reused.
    std::vector<batch_ptr> spare_;
};

} // namespace colock::inline v0::redis::detail
