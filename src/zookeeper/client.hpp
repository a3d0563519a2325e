// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/operations/operation_client.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace colock::inline v0::zookeeper::detail {

/// The client of an ensemble: its session, and the operations that use the session. Connects on first use, opens a new
/// session if the old one has ended while it is needed, and closes the session when nothing needs it.
///
/// Thread safety: submit, watch and close may be called from any thread; other functions as noted.
class client final : public operation_client
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings config, std::weak_ptr<contact> reports);
    explicit client(settings config);
    ~client() override;

    [[nodiscard]] session_manager& sessions() noexcept override;

private:
    struct parts;

    // All functions below are called on the strand.
    [[nodiscard]] parts& all_parts() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;
    void listen() override;
    void sweep() override;
    [[nodiscard]] bool can_start();
    void set_watches();
};

} // namespace colock::inline v0::zookeeper::detail
