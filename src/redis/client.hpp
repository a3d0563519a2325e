// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/fence_anchor.hpp"
#include "redis/pipeline/send_queue.hpp"
#include "redis/pipeline/waiting_writers.hpp"
#include "redis/settings.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/lost_requests.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace colock::redis::detail {

/// Our connections to one server, and all that travels on them: one connection for commands, fed in batches, and one
/// for messages while somebody is interested in them. Connects on first use, reconnects while it is needed, closes when
/// it is not.
///
/// Owns the parts that do this.
///
/// Thread safety: submit, watch and the waits may be called from any thread; the rest is said beside it.
class client final : public remote::client_base
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const detail::settings& config() const noexcept { return config_; }

    /// The adapter's `max_clock_lead`. Once replicas have been seen they count for good: one that is away for a moment
    /// may be promoted later.
    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept;

    /// Sends an operation as soon as may be. Its end comes from the strand; dropped if the context is gone.
    void submit(operation_ptr added);
    /// On the strand: which requests may still arrive though their connection has ended.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept;
    /// On the strand.
    [[nodiscard]] fence_anchor& anchor() noexcept { return anchor_; }
    /// Keys on which writers have met readers of late.
    [[nodiscard]] waiting_writers& writers() noexcept { return writers_; }

    [[nodiscard]] int listens(const std::string& channel) const { return sources().armed(channel) ? 1 : 0; }

    void context_forked() noexcept override;

private:
    struct parts;

    // All below: on the strand.
    [[nodiscard]] parts& run() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;
    void opened() override;
    void refuse(const failure_ptr& why) override;
    void listen() override;
    void sweep(lease_clock::duration stood_still) override;
    void give_up_all() override;
    void drop_all() noexcept override;
    void tell_dropped();

    const detail::settings config_;

    send_queue send_queue_;
    flush_hints hints_;
    fence_anchor anchor_{config_};
    waiting_writers writers_;
    std::atomic<bool> replicas_seen_;
};

} // namespace colock::redis::detail
