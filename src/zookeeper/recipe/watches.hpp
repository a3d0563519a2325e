// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "remote/requests/wait_sources.hpp"
#include "zookeeper/recipe/requests.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <deque>
#include <string>
#include <string_view>

namespace colock::zookeeper::detail {

/// The nodes that somebody waits for, and the server's watches of them, each of which fires once.
///
/// Thread safety: none; belongs to the strand.
class watches
{
public:
    /// \param how the layout of the folders that are watched
    watches(const asio::any_io_executor& strand, remote::client_base& owner, remote::wait_sources& sources, layout how)
        : strand_(strand), owner_(owner), sources_(sources), layout_(how)
    {
    }

    /// What a source of events is called.
    [[nodiscard]] static std::string of_node(std::string path) { return path; }
    [[nodiscard]] static std::string of_children(std::string path) { return std::move(path) += '/'; }
    [[nodiscard]] static bool is_of_children(std::string_view source) { return source.ends_with('/'); }

    /// Has the server watch some that it does not watch yet, in that session. True: there may be more.
    [[nodiscard]] bool ask_some(requests& by, remote::connection_number session);
    /// Some of those that nobody is interested in any more need no watch; one that stands dies with its node.
    void forget_unused();
    /// \param path empty: any
    /// \return whether there is something to be watched again at once
    [[nodiscard]] bool changed(std::string_view path);
    /// What is watched on another connection, or in another session, is looked at again.
    void begin_round() noexcept { sources_.begin_round(); }

private:
    void answered(
        const remote::wait_sources::source_ptr& which, remote::connection_number session, const reply& answer);

    /// Wakes those who wait for any of several nodes to make room, as far as there is room.
    void folder_listed(
        const remote::wait_sources::source_ptr& which, remote::connection_number session, const reply& answer);

    /// Ends waits, at most so many in one handler: thousands may wait for one node.
    void wake(remote::wait_sources::completions ended);
    void wake_some();

    const asio::any_io_executor strand_;
    remote::client_base& owner_;
    remote::wait_sources& sources_;
    const layout layout_;
    /// Waits that have ended, and that are still to be told.
    std::deque<completion<woken>> ended_;
};

} // namespace colock::zookeeper::detail
