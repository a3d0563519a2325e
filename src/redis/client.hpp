// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/fence_anchor.hpp"
#include "redis/outbox.hpp"
#include "redis/settings.hpp"
#include "redis/waiting_writers.hpp"
#include "remote/connection_plan.hpp"
#include "remote/lost_requests.hpp"
#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "remote/wait_sources.hpp"

#include <colock/adapter.hpp>
#include <colock/clock.hpp>
#include <colock/context_member.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace colock::redis::detail {

/// Our connections to one server, and all that travels on them: one connection for commands, fed in batches, and one
/// for messages while somebody is interested in them. Connects on first use, reconnects while it is needed, closes when
/// it is not.
///
/// Owns the parts that do this, and turns the one timer of theirs.
///
/// Thread safety: submit, watch and the waits may be called from any thread; the rest is said beside it.
class client final : public colock::context_member, public remote::parts_owner
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const detail::settings& config() const noexcept { return config_; }

    /// Sends an operation as soon as may be. Its end comes from the strand; dropped if the context is gone.
    void submit(operation_ptr added);
    /// On the strand: which requests may still arrive though their connection has ended.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept;
    /// On the strand.
    [[nodiscard]] fence_anchor& anchor() noexcept { return anchor_; }
    /// Keys on which writers have met readers of late.
    [[nodiscard]] waiting_writers& writers() noexcept { return writers_; }

    [[nodiscard]] int listens(const std::string& channel) const { return sources_.armed(channel) ? 1 : 0; }
    [[nodiscard]] remote::interest watch(const std::string& channel);

    /// Closes what nobody needs, and ends at the latest after `deadline`.
    void close(lease_clock::duration deadline, completion<closed> done);
    /// The adapter is gone: nothing is kept beyond what is under way.
    void retire() noexcept;

    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

private:
    struct runtime;

    template <class Function, class Initiate>
    void on_strand(Function function, Initiate initiate);
    template <class Function>
    void on_strand(Function function);

    // All below: on the strand.
    [[nodiscard]] remote::connection_plan::demand demand() const noexcept override;
    [[nodiscard]] remote::connection_plan::surroundings surroundings() const noexcept;
    void opened() override;
    void refuse(const failure_ptr& why) override;
    void arm_turn() override;
    void finish_close() noexcept override;
    void turn(lease_clock::time_point due);
    void close_if_idle();
    void give_up_all();

    const detail::settings config_;

    outbox outbox_;
    flush_hints hints_;
    fence_anchor anchor_{config_};
    waiting_writers writers_;
    /// The channel of each key that somebody waits for.
    remote::wait_sources sources_;
    /// Somebody has begun to wait: what that leads to has been posted already.
    std::atomic<bool> listening_due_{false};

    /// Guards whether there is a runtime.
    mutable colock::detail::light_mutex mutex_;
    /// What belongs to the strand, the strand included. Null once the context has shut down.
    std::unique_ptr<runtime> runtime_;
};

} // namespace colock::redis::detail
