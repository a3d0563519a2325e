// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/settings.hpp"
#include "mongo/topology/primary.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/request_queue.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

class batchable_operation;
class key_reader;
class shared_read;

/// Connections to the primary of a replica set, and the operations that use them. Connects on first use, looks for the
/// next primary while it is needed, and closes connections that are not needed.
///
/// Thread safety: submit, watch, close and waiting may be called from any thread. For the other functions see their
/// comments.
class client final : public remote::client_base
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<contact> reports);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const settings& config() const noexcept { return config_; }
    /// May also be called after the end of the context.
    [[nodiscard]] waiting_by waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
    /// Name by which this adapter marks the documents of keys that it waits for.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// Starts an operation as soon as possible. The operation ends on the strand. It is dropped if the context is gone.
    void submit(remote::operation_ptr added) { queue_.submit(std::move(added)); }

    // The following functions are for operations, and must be called on the strand.
    [[nodiscard]] remote::request_queue& queue() noexcept { return queue_; }
    [[nodiscard]] primary& get_primary() noexcept;
    /// Returns a number greater than all before. A server that has carried out a request of a claim carries out no
    /// request of the claim with a lower number afterwards.
    [[nodiscard]] std::int64_t next_request() noexcept { return ++requests_; }
    /// Sends the operation in a batch with other operations that are started at the same time.
    void add_to_batch(batchable_operation& added);
    /// Reads the key of the operation together with keys that other operations read at the same time.
    void read(key_reader& added);

private:
    struct parts;

    // The functions below must be called on the strand.
    [[nodiscard]] parts& run() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;
    void opened() override;
    void refuse(const failure_ptr& why) override { queue_.refuse(why); }
    void listen() override;
    void sweep(lease_clock::duration stall_time) override;
    void give_up_all() override;
    void drop_all() noexcept override { queue_.drop_all(); }
    [[nodiscard]] bool can_start(const remote::operation& next);
    void send_batch();
    /// Returns the read that more operations can join; null if there is none.
    [[nodiscard]] std::shared_ptr<shared_read> open_read() const;
    [[nodiscard]] std::size_t operation_count() noexcept;
    void wait_for_batch();
    void batch_wait_ended();

    const settings config_;
    remote::request_queue queue_;
    const std::string name_;
    std::int64_t requests_ = 0;
    std::atomic<waiting_by> waiting_{waiting_by::nothing};
};

} // namespace colock::inline v0::mongo::detail
