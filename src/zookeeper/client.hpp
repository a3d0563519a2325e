// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/errand_client.hpp"
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
class client final : public remote::errand_client
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const settings& config() const noexcept { return config_; }

    // For operations, on the strand.
    [[nodiscard]] sessions& talks() noexcept;
    [[nodiscard]] bool nobody_waits() const noexcept { return sources().empty(); }

    void context_forked() noexcept override;

private:
    struct parts;

    // All below: on the strand.
    [[nodiscard]] parts& run() const noexcept;
    [[nodiscard]] remote::connection_plan& plan() noexcept override;
    [[nodiscard]] lease_clock::duration pace() const noexcept override;
    void opened() override;
    void want() override;
    [[nodiscard]] std::size_t most_under_way() const noexcept override;
    [[nodiscard]] bool takes_more() noexcept override;
    void started_all() override;
    void all_ended() override;
    [[nodiscard]] failure_ptr denial() noexcept override;
    void denial_told() override;
    [[nodiscard]] const failure_ptr& problem() const noexcept override;
    [[nodiscard]] bool in_use() const noexcept override;
    [[nodiscard]] bool others_open() const noexcept override;
    void give_up_connection() override;
    void listen() override;
    void look_around(lease_clock::duration stood_still) override;
    void forget_unused() override;
    void close_unused() override;
    void watch_some();

    const settings config_;
};

} // namespace colock::zookeeper::detail
