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

namespace colock::mongo::detail {

class batchable_operation;
class key_reader;
class shared_read;

/// Our connections to a replica set's primary, and all that is asked of it. Connects on first use, finds the next
/// primary while it is needed, closes when it is not.
///
/// Owns the parts that do this.
///
/// Thread safety: submit, watch, close and waiting may be called from any thread; the rest is said beside it.
class client final : public remote::client_base
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const settings& config() const noexcept { return config_; }
    /// After the end of the context, too.
    [[nodiscard]] waiting_by waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
    /// What this adapter calls itself where it waits.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// Starts an operation as soon as possible. The operation ends on the strand; it is dropped if the context is gone.
    void submit(remote::operation_ptr added) { queue_.submit(std::move(added)); }

    // For operations, on the strand.
    [[nodiscard]] remote::request_queue& queue() noexcept { return queue_; }
    [[nodiscard]] primary& talks() noexcept;
    /// Greater than all before: a server carries out no request of a claim after a later one.
    [[nodiscard]] std::int64_t next_request() noexcept { return ++requests_; }
    /// It goes with those that are started at the same time.
    void join(batchable_operation& added);
    /// Its key is read with those that others ask for at the same time.
    void read(key_reader& added);

    void context_forked() noexcept override;

private:
    struct parts;

    // All below: on the strand.
    [[nodiscard]] parts& run() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;
    void opened() override;
    void refuse(const failure_ptr& why) override { queue_.refuse(why); }
    void listen() override;
    void sweep(lease_clock::duration stood_still) override;
    void give_up_all() override;
    void drop_all() noexcept override { queue_.drop_all(); }
    [[nodiscard]] bool can_start(const remote::operation& next);
    void send_together();
    /// Null: there is none that more can join.
    [[nodiscard]] std::shared_ptr<shared_read> open_read() const;
    [[nodiscard]] std::size_t load() noexcept;
    void wait_for_company();
    void company_waited_for();

    const settings config_;
    remote::request_queue queue_;
    const std::string name_;
    std::int64_t requests_ = 0;
    std::atomic<waiting_by> waiting_{waiting_by::nothing};
};

} // namespace colock::mongo::detail
