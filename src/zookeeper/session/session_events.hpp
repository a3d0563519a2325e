// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/trouble.hpp"

#include <string_view>

namespace colock::zookeeper::detail {

/// What a session tells its owner, on its strand.
class session_events
{
public:
    /// A server has taken it on: the first, or another after a suspension.
    virtual void on_connected() noexcept = 0;
    virtual void on_suspended() noexcept = 0;
    /// Every server was tried in vain.
    virtual void on_unreachable(const trouble& why) noexcept = 0;
    /// It was away for so long that all that it held counts as lost, and yet the server still knows it: what is granted
    /// from now on is tied to another bound.
    virtual void on_outlived() noexcept = 0;
    /// The server says that it is over.
    virtual void on_expired() noexcept = 0;
    /// The server says that the user is not the one he says he is, or may not write where we are; the session goes on
    /// in the second case.
    virtual void on_denied() noexcept = 0;
    /// A node that was watched; empty: any.
    virtual void on_changed(std::string_view path) noexcept = 0;
    virtual void on_log(std::string_view text) noexcept = 0;

protected:
    ~session_events() = default;
};

} // namespace colock::zookeeper::detail
