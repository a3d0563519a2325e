// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/parts_owner.hpp"
#include "remote/wait_sources.hpp"
#include "zookeeper/requests.hpp"

#include <string>
#include <string_view>

namespace colock::zookeeper::detail {

/// The nodes that somebody waits for, and the server's watches of them, each of which fires once.
///
/// Thread safety: none; belongs to the strand.
class watches
{
public:
    watches(remote::parts_owner& owner, remote::wait_sources& sources) : owner_(owner), sources_(sources) {}

    /// What a source of events is called.
    [[nodiscard]] static std::string of_node(std::string path) { return path; }
    [[nodiscard]] static std::string of_children(std::string path) { return std::move(path) += '/'; }

    /// Has the server watch some that it does not watch yet, in that session. True: there may be more.
    [[nodiscard]] bool ask_some(requests& by, remote::connection_number session);
    /// Some of those that nobody is interested in any more need no watch; one that stands dies with its node.
    void forget_unused();
    /// \param path empty: any
    void changed(std::string_view path);
    /// What is watched on another connection, or in another session, is looked at again.
    void begin_round() noexcept { sources_.begin_round(); }

private:
    void answered(
        const remote::wait_sources::source_ptr& which, remote::connection_number session, const reply& answer);

    remote::parts_owner& owner_;
    remote::wait_sources& sources_;
};

/// Tells all of them.
void wake_all(remote::wait_sources::completions ended);

} // namespace colock::zookeeper::detail
