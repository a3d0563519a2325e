// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "remote/requests/wait_sources.hpp"
#include "zookeeper/recipe/requests.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <deque>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// The nodes that claims wait for, and the server's watches of them, each of which fires once.
///
/// Thread safety: none; belongs to the strand.
class watches
{
public:
    /// \param layout layout of the folders that are watched
    watches(
        const asio::any_io_executor& strand, remote::client_base& owner, remote::wait_sources& sources, layout layout)
        : strand_(strand), owner_(owner), sources_(sources), layout_(layout)
    {
    }

    /// Names of event sources.
    [[nodiscard]] static std::string of_node(std::string path) { return path; }
    [[nodiscard]] static std::string of_children(std::string path) { return std::move(path) += '/'; }
    [[nodiscard]] static bool is_of_children(std::string_view source) { return source.ends_with('/'); }

    /// Sets some of the missing watches, in the session with the number `session`. Returns true if there may be more.
    [[nodiscard]] bool set_some(requests& sender, remote::connection_number session);
    /// Forgets some of the nodes that no claim is interested in. Their watches are not removed: a watch ends with its
    /// node.
    void forget_unused();
    /// \param path the node that has changed; empty: any node
    /// \return whether a watch has to be set again at once
    [[nodiscard]] bool changed(std::string_view path);
    /// Marks all watches as missing, because the connection or the session has been replaced.
    void begin_round() noexcept { sources_.begin_round(); }

private:
    void on_reply(
        const remote::wait_sources::source_ptr& source, remote::connection_number session, const reply& reply);

    /// Wakes the claims that wait for any of several nodes, as far as there is room.
    void folder_listed(
        const remote::wait_sources::source_ptr& source, remote::connection_number session, const reply& reply);

    /// Ends waits, a limited number in one handler, because thousands of claims may wait for one node.
    void wake(remote::wait_sources::completions completions);
    void wake_some();

    const asio::any_io_executor strand_;
    remote::client_base& owner_;
    remote::wait_sources& sources_;
    const layout layout_;
    /// Waits that have ended and are not completed yet.
    std::deque<completion<wait_outcome>> ended_waits_;
};

} // namespace colock::inline v0::zookeeper::detail
