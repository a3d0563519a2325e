// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/session_event_dispatcher.hpp"

#include <boost/system/errc.hpp>

#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// Requests and changes that are told in one go, or a few more.
constexpr int most_told = 64;

int size_of(const told& each) noexcept
{
    return each.what == told::kind::change ? 1 : static_cast<const request&>(each).size;
}

/// Returns how many that were.
int tell_one(told& each, session_events* to)
{
    if (each.what == told::kind::change) {
        if (to)
            to->on_changed(static_cast<told_change&>(each).path);
        return 1;
    }
    auto& asked = static_cast<request&>(each);
    if (asked.done)
        asked.done(std::move(asked.answer));
    return size_of(each);
}

} // namespace

void session_event_dispatcher::drop() noexcept
{
    told_.clear_and_dispose(std::default_delete<told>());
}

void session_event_dispatcher::met_a_stranger()
{
    is_stranger_ = true;
    trouble_ = {"what listens there is no ZooKeeper server", make_error_code(boost::system::errc::protocol_error)};
}

void session_event_dispatcher::tell_notes(zk_client& driver, session_events& to)
{
    for (const auto& line : driver.take_log()) {
        if (auto found = read_trouble(line, was_cut_)) {
            was_cut_ = false;
            if (!is_stranger_)
                trouble_ = *std::move(found);
        }
        to.on_log(line);
    }
    if (driver.take_missed())
        to.on_changed({});
}

void session_event_dispatcher::tell_news(session_events& to)
{
    for (const auto each : std::exchange(announced_, {})) {
        switch (each) {
        case news::connected:
            to.on_connected();
            break;
        case news::suspended:
            to.on_suspended();
            break;
        case news::unreachable:
            to.on_unreachable(trouble_);
            break;
        case news::outlived:
            to.on_outlived();
            break;
        case news::expired:
            to.on_expired();
            break;
        case news::denied:
            to.on_denied();
            break;
        }
    }
}

int session_event_dispatcher::tell_some(session_events* to)
{
    if (told_.empty())
        return 0;
    int told_so_far = 0;
    while (told_so_far < most_told && !told_.empty()) {
        const std::unique_ptr<told> next(&told_.front());
        told_.pop_front();
        told_so_far += tell_one(*next, to);
    }
    return told_so_far;
}

} // namespace colock::zookeeper::detail
