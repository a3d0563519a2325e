// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "remote/requests/request_queue.hpp"
#include "zookeeper/session/session_manager.hpp"
#include "zookeeper/settings.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// The client of an ensemble: its session, and the operations that use the session. Connects on first use, opens a new
/// session if the old one has ended while it is needed, and closes the session when nothing needs it.
///
/// Thread safety: submit, watch and close may be called from any thread; other functions as noted.
class client final : public remote::client_base
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<contact> reports);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const settings& config() const noexcept { return config_; }

    /// Starts an operation as soon as possible. The operation ends on the strand; it is dropped if the context is gone.
    void submit(remote::operation_ptr added) { queue_.submit(std::move(added)); }

    // The following functions are for operations, and are called on the strand.
    [[nodiscard]] remote::request_queue& queue() noexcept { return queue_; }
    [[nodiscard]] session_manager& sessions() noexcept;
    [[nodiscard]] bool has_no_waiters() const noexcept { return sources().empty(); }

private:
    struct parts;

    // All functions below are called on the strand.
    [[nodiscard]] parts& all_parts() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;
    void opened() override;
    void refuse(const failure_ptr& why) override { queue_.refuse(why); }
    void listen() override;
    void sweep(lease_clock::duration stall_time) override;
    void give_up_all() override;
    void drop_all() noexcept override { queue_.drop_all(); }
    [[nodiscard]] bool can_start();
    void set_watches();

    const settings config_;
    remote::request_queue queue_;
};

} // namespace colock::inline v0::zookeeper::detail
