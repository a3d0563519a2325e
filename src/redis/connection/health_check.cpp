// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/health_check.hpp"

#include "redis/pipeline/batch.hpp"

#include <boost/redis/connection.hpp>

#include <cstddef>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Number of checks, two per health interval, without received data after which a connection is closed.
constexpr unsigned max_silent_checks = 4;
/// Number of timer events in `connect_timeout`.
constexpr unsigned max_connect_checks = 4;

} // namespace

health_check::health_check(const asio::any_io_executor& strand, const settings& config, driver_connection& connection,
    std::uint64_t& received_nodes)
    : connect_interval_(std::chrono::steady_clock::duration(config.connect_timeout) / max_connect_checks),
      interval_(std::chrono::steady_clock::duration(config.health_interval) / 2),
      liveness_({.before_first_data = max_silent_checks, .silence = max_silent_checks}), timer_(strand),
      connection_(connection), received_nodes_(received_nodes)
{
    ping_.get_config() = request_config;
}

void health_check::note_established(std::shared_ptr<void> owner)
{
    if (is_stopped_)
        return;
    is_established_ = true;
    start(std::move(owner));
}

void health_check::start(std::shared_ptr<void> owner)
{
    timer_.expires_after(is_established_ ? interval_ : connect_interval_);
    timer_.async_wait([this, owner = std::move(owner)](const error_code& error) mutable {
        if (!error && !is_stopped_)
            check(std::move(owner));
    });
}

void health_check::stop()
{
    is_stopped_ = true;
    timer_.cancel();
}

void health_check::check(std::shared_ptr<void> owner)
{
    if (!is_established_) {
        if (++connect_checks_ == max_connect_checks)
            give_up();
        else
            start(std::move(owner));
        return;
    }
    switch (liveness_.check(received_nodes_, true)) {
    case remote::liveness::action::give_up:
        give_up();
        return;
    case remote::liveness::action::ask:
        send_ping(owner);
        break;
    case remote::liveness::action::none:
        break;
    }
    start(std::move(owner));
}

void health_check::give_up()
{
    is_silent_ = true;
    connection_.cancel(boost::redis::operation::all);
}

void health_check::send_ping(std::shared_ptr<void> owner)
{
    ping_.clear();
    ping_.push("PING");
    using event = boost::redis::any_adapter::parse_event;
    const auto count = [this](event kind, const boost::redis::resp3::node_view&, error_code&) {
        if (kind == event::node)
            ++received_nodes_;
    };
    connection_.async_exec(ping_, boost::redis::any_adapter(boost::redis::any_adapter::impl_t(count)),
        [this, owner = std::move(owner)](const error_code&, std::size_t) { liveness_.answered(); });
}

} // namespace colock::inline v0::redis::detail
