// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"
#include "redis/settings.hpp"

#include <colock/spi/adapter.hpp>

#include <boost/redis/request.hpp>

#include <string>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Adds a script that finds out which commands the server refuses. The script is sent by EVAL and by EVALSHA, so that
/// both are checked. CLIENT KILL, which scripts cannot call, names a connection that does not exist.
///
/// Checks the rights on commands. Rights on key and channel patterns are not checked, except for the probe key and the
/// fence counter.
void push_rights_check(boost::redis::request& request, const settings& config);

/// Result of the rights check.
struct rights
{
    /// Reason why locks could not be renewed or released, or null.
    failure_ptr failure{};
    /// Reason why no shared lock and no lock of a group can be granted, or null.
    failure_ptr sorted_sets_refused{};
    /// Whether a node of a cluster has sharded channels. A missing right is no reason to use ordinary ones: the node
    /// decides, so that publishers and subscribers agree.
    bool has_sharded_channels = true;
    /// Warnings about features that the missing rights disable.
    std::vector<std::string> warnings{};
};
[[nodiscard]] rights read_rights(const reply& by_text, const reply& by_digest, const reply& killed);

} // namespace colock::inline v0::redis::detail
