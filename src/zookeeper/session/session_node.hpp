// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"

#include <optional>

namespace colock::inline v0::zookeeper::detail {

/// The state of the ephemeral node that the beats of a session write, as far as it is known. This class decides, after
/// the session was resumed and after each beat, whether the servers have lost its history: their data may have been
/// replaced by an older copy that contains the session.
///
/// Thread safety: none.
class session_node
{
public:
    /// Whether the node was created or written by a beat that was answered.
    [[nodiscard]] bool exists() const noexcept { return newest_.has_value(); }
    void note_beat(const node_stat& stat) noexcept { newest_ = stat; }

    /// Returns whether the newest answered beat is missing. The reply must be newer than the resumption.
    /// \param found reply to `requests::exists` or to the next beat, with the status `ok` or `no_node`
    [[nodiscard]] bool has_lost_history(const reply& found) const noexcept
    {
        if (!newest_)
            return false;
        if (!found.ok() || found.stat.created_in != newest_->created_in)
            return true;
        // A higher version belongs to a beat whose answer was lost.
        return found.stat.version < newest_->version ||
               (found.stat.version == newest_->version && found.stat.modified_in != newest_->modified_in);
    }

private:
    std::optional<node_stat> newest_;
};

} // namespace colock::inline v0::zookeeper::detail
