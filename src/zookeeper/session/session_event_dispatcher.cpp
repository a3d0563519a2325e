// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_event_dispatcher.hpp"

#include <boost/system/errc.hpp>

#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Maximum number of requests and changes that `deliver_some` delivers. The last transaction may exceed this number.
constexpr int max_delivered = 64;

int size_of(const driver_report& each) noexcept
{
    return each.type == driver_report::kind::change ? 1 : static_cast<const request&>(each).size;
}

/// Delivers one item, and returns the number of requests or changes in it.
int deliver(driver_report& each, session_events* to)
{
    if (each.type == driver_report::kind::change) {
        if (to)
            to->on_changed(static_cast<change_report&>(each).path);
        return 1;
    }
    auto& answered_request = static_cast<request&>(each);
    if (answered_request.done)
        answered_request.done(std::move(answered_request.answer));
    return size_of(each);
}

} // namespace

void session_event_dispatcher::drop() noexcept
{
    reports_.clear_and_dispose(std::default_delete<driver_report>());
}

void session_event_dispatcher::note_foreign_server()
{
    is_foreign_server_ = true;
    connection_failure_ = {"the peer is not a ZooKeeper server", make_error_code(boost::system::errc::protocol_error)};
}

void session_event_dispatcher::report_log(zk_client& driver, session_events& to)
{
    for (const auto& line : driver.take_log()) {
        if (auto found = read_connection_failure(line, was_shut_down_)) {
            was_shut_down_ = false;
            if (!is_foreign_server_)
                connection_failure_ = *std::move(found);
        }
        to.on_log(line);
    }
    if (driver.take_missed_changes())
        to.on_changed({});
}

void session_event_dispatcher::deliver_events(session_events& to)
{
    for (const auto each : std::exchange(events_, {})) {
        switch (each) {
        case event::connected:
            to.on_connected();
            break;
        case event::suspended:
            to.on_suspended();
            break;
        case event::unreachable:
            to.on_unreachable(connection_failure_);
            break;
        case event::lease_ended:
            to.on_lease_ended();
            break;
        case event::expired:
            to.on_expired();
            break;
        case event::history_lost:
            to.on_history_lost();
            break;
        case event::denied:
            to.on_denied();
            break;
        }
    }
}

int session_event_dispatcher::deliver_some(session_events* to)
{
    if (reports_.empty())
        return 0;
    int delivered = 0;
    while (delivered < max_delivered && !reports_.empty()) {
        const std::unique_ptr<driver_report> next(&reports_.front());
        reports_.pop_front();
        delivered += deliver(*next, to);
    }
    return delivered;
}

} // namespace colock::inline v0::zookeeper::detail
