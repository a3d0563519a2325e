// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/operations/operation_client.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstddef>
#include <memory>

namespace colock::inline v0::mongo::detail {

class shared_read;

/// Connections to the primary of a replica set, and the operations that use them. Connects on first use, looks for the
/// next primary while it is needed, and closes connections that are not needed.
///
/// Thread safety: submit, watch, close and waiting may be called from any thread. For the other functions see their
/// comments.
class client final : public operation_client
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings config, std::weak_ptr<contact> reports);
    explicit client(settings config);
    ~client() override;

    /// May also be called after the end of the context.
    [[nodiscard]] waiting_by waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

    [[nodiscard]] primary& get_primary() noexcept override;
    void add_to_batch(batchable_operation& operation) override;
    void read(key_reader& reader) override;

private:
    struct parts;

    // The functions below must be called on the strand.
    [[nodiscard]] parts& run() const noexcept;
    [[nodiscard]] bool can_start(const remote::operation& next);
    void send_batch();
    /// Returns the read that more operations can join; null if there is none.
    [[nodiscard]] std::shared_ptr<shared_read> open_read() const;
    [[nodiscard]] std::size_t operation_count() noexcept;
    void wait_for_batch();
    void batch_wait_ended();

    std::atomic<waiting_by> waiting_{waiting_by::nothing};
};

} // namespace colock::inline v0::mongo::detail
