// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/connection_failure.hpp"
#include "zookeeper/driver/zk_client.hpp"
#include "zookeeper/session/session_events.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// Queues what a session has to report and delivers it in parts: session events, changes of watched nodes, and replies.
///
/// Thread safety: none.
class session_event_dispatcher
{
public:
    enum class event : unsigned char
    {
        connected,
        suspended,
        unreachable,
        lease_ended,
        expired,
        history_lost,
        denied,
    };

    session_event_dispatcher() = default;
    session_event_dispatcher(const session_event_dispatcher&) = delete;
    session_event_dispatcher& operator=(const session_event_dispatcher&) = delete;
    ~session_event_dispatcher() { drop(); }

    void add(event new_event) { events_.push_back(new_event); }
    void add(driver_report_list& reports) noexcept { reports_.splice(reports_.end(), reports); }
    void add(std::unique_ptr<driver_report> report) noexcept { reports_.push_back(*report.release()); }
    /// Discards all items that were not delivered.
    void drop() noexcept;

    void set_connection_failure(connection_failure failure) { connection_failure_ = std::move(failure); }
    /// Notes that this client has shut down a silent connection. The driver's log does not contain this reason.
    void note_shut_down() noexcept { was_shut_down_ = true; }
    /// Notes that the peer is not a ZooKeeper server. This reason replaces those of the driver until a ZooKeeper server
    /// has been found.
    void note_foreign_server();
    void note_valid_server() noexcept { is_foreign_server_ = false; }

    /// Delivers the lines of the driver's log, and reports changes that were missed.
    void report_log(zk_client& driver, session_events& to);
    void deliver_events(session_events& to);
    /// Delivers some of the changes and replies, and returns how many. Replies are delivered even if `to` is null.
    int deliver_some(session_events* to);
    [[nodiscard]] bool empty() const noexcept { return reports_.empty(); }

private:
    std::vector<event> events_;
    driver_report_list reports_;
    /// Reason why there is no connection: the last one that the driver or this client has given.
    connection_failure connection_failure_;
    bool is_foreign_server_ = false;
    bool was_shut_down_ = false;
};

} // namespace colock::inline v0::zookeeper::detail
