// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/connection_plan.hpp"
#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "remote/wait_sources.hpp"
#include "zookeeper/errands.hpp"
#include "zookeeper/sessions.hpp"
#include "zookeeper/settings.hpp"

#include <colock/adapter.hpp>
#include <colock/clock.hpp>
#include <colock/context_member.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace colock::zookeeper::detail {

/// Our session with an ensemble, and all that is asked in it. Connects on first use, goes on in a new session while it
/// is needed, closes when it is not.
///
/// Owns the parts that do this, and turns the one timer of theirs.
///
/// Thread safety: submit, watch and close may be called from any thread; the rest is said beside it.
class client final : public colock::context_member, public remote::parts_owner
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const settings& config() const noexcept { return config_; }

    /// Starts an operation as soon as may be. Its end comes from the strand; dropped if the context is gone.
    void submit(operation_ptr added);
    [[nodiscard]] remote::interest watch(const std::string& source);

    /// Closes what nobody needs, and ends at the latest after `deadline`.
    void close(lease_clock::duration deadline, completion<closed> done);
    /// The adapter is gone: nothing is kept beyond what is under way.
    void retire() noexcept;

    // For operations, on the strand.
    [[nodiscard]] sessions& talks() noexcept;
    /// It could not be sent after all.
    void again(operation& which);
    /// Before it tells anybody.
    void ended(operation& which);

    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

private:
    struct runtime;

    template <class Function>
    void on_strand(Function function);

    // All below: on the strand.
    [[nodiscard]] remote::connection_plan::demand demand() const noexcept override;
    [[nodiscard]] remote::connection_plan::surroundings surroundings() const noexcept;
    void opened() override;
    void refuse(const failure_ptr& why) override;
    void arm_turn() override;
    void finish_close() noexcept override;
    void flush();
    void watch_some();
    void turn(lease_clock::time_point due);
    void close_if_idle();
    void give_up_all();

    const settings config_;
    errands errands_;
    remote::wait_sources sources_;
    /// Somebody has begun to wait: what that leads to has been posted already.
    std::atomic<bool> watching_due_{false};

    /// Guards whether there is a runtime.
    mutable colock::detail::light_mutex mutex_;
    /// What belongs to the strand, the strand included. Null once the context has shut down.
    std::unique_ptr<runtime> runtime_;
};

} // namespace colock::zookeeper::detail
