// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/client_base.hpp"
#include "zookeeper/errands.hpp"
#include "zookeeper/sessions.hpp"
#include "zookeeper/settings.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace colock::zookeeper::detail {

/// Our session with an ensemble, and all that is asked in it. Connects on first use, goes on in a new session while it
/// is needed, closes when it is not.
///
/// Owns the parts that do this.
///
/// Thread safety: submit, watch and close may be called from any thread; the rest is said beside it.
class client final : public remote::client_base
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const settings& config() const noexcept { return config_; }

    /// Starts an operation as soon as may be. Its end comes from the strand; dropped if the context is gone.
    void submit(operation_ptr added);

    // For operations, on the strand.
    [[nodiscard]] sessions& talks() noexcept;
    /// It could not be sent after all.
    void again(operation& which);
    /// Before it tells anybody.
    void ended(operation& which);

    void context_forked() noexcept override;

private:
    struct parts;

    // All below: on the strand.
    [[nodiscard]] parts& run() const noexcept;
    [[nodiscard]] remote::connection_plan::demand demand() const noexcept override;
    [[nodiscard]] remote::connection_plan::surroundings surroundings() const noexcept override;
    [[nodiscard]] remote::connection_plan& plan() noexcept override;
    [[nodiscard]] lease_clock::duration pace() const noexcept override;
    void opened() override;
    void refuse(const failure_ptr& why) override;
    void listen() override;
    void look_around(lease_clock::duration stood_still) override;
    void forget_unused() override;
    void close_unused() override;
    void give_up_all() override;
    [[nodiscard]] bool owes_news() const noexcept override { return errands_.owes_news(); }
    void drop_all() noexcept override;
    void flush();
    void end_some();
    void watch_some();

    const settings config_;
    errands errands_;
    /// More of them end in a handler that is posted already.
    bool ending_ = false;
};

} // namespace colock::zookeeper::detail
