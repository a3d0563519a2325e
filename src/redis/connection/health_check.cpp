// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/health_check.hpp"

#include "redis/pipeline/batch.hpp"

#include <boost/redis/connection.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Number of checks, two per health interval, without received data after which a connection is closed.
constexpr unsigned max_silent_checks = 4;

} // namespace

health_check::health_check(const asio::any_io_executor& strand, const settings& config, driver_connection& connection,
    std::uint64_t& received_nodes)
    : interval_(std::chrono::steady_clock::duration(config.health_interval) / 2),
      liveness_({.before_first_data = std::max(
                     max_silent_checks, static_cast<unsigned>(config.connect_timeout * 2 / config.health_interval)),
          .silence = max_silent_checks}),
      timer_(strand), connection_(connection), received_nodes_(received_nodes)
{
    ping_.get_config() = request_config;
}

void health_check::start(std::shared_ptr<void> owner)
{
    timer_.expires_after(interval_);
    timer_.async_wait([this, owner = std::move(owner)](const error_code& code) mutable {
        if (!code && !is_stopped_)
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
    // From the first sent byte on, the server must send data: replies to the greeting, and later a reply to each PING.
    const bool awaits_answer = received_nodes_ != 0 || connection_.get_usage().bytes_sent != 0;
    switch (liveness_.check(received_nodes_, awaits_answer)) {
    case remote::liveness::action::give_up:
        is_silent_ = true;
        connection_.cancel(boost::redis::operation::all);
        return;
    case remote::liveness::action::ask:
        send_ping(owner);
        break;
    case remote::liveness::action::none:
        break;
    }
    start(std::move(owner));
}

void health_check::send_ping(std::shared_ptr<void> owner)
{
    ping_.clear();
    ping_.push("PING");
    using event = boost::redis::any_adapter::parse_event;
    const auto count = [this](event what, const boost::redis::resp3::node_view&, error_code&) {
        if (what == event::node)
            ++received_nodes_;
    };
    connection_.async_exec(ping_, boost::redis::any_adapter(boost::redis::any_adapter::impl_t(count)),
        [this, owner = std::move(owner)](const error_code&, std::size_t) { liveness_.answered(); });
}

} // namespace colock::inline v0::redis::detail
