// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/operations/coroutine_operation.hpp"
#include "zookeeper/recipe/folder_cache.hpp"

#include <string>

namespace colock::inline v0::zookeeper::detail {

/// An operation that creates the folders of its nodes.
class folder_operation : public coroutine_operation
{
protected:
    using coroutine_operation::coroutine_operation;

    using folder_state = folder_cache::state;

    /// Sends the requests that create a folder and its parents, except those that the `folder_cache` contains. Later
    /// requests of the same write do not create them again.
    void make_folders(requests& sender, const std::string& folder);
    /// Sends the request that creates a folder that the server removes when it is empty. The parent must exist, or its
    /// creation must have been sent before.
    void make_container(requests& sender, const std::string& folder);

    /// Why a folder cannot be created: the first failure among the requested folders.
    [[nodiscard]] const reply& folder_failure() const noexcept { return folder_failure_; }

private:
    void make_folder(requests& sender, const std::string& folder);
    /// Notes whether a folder exists, by the reply to its own creation. The reply to the creation of the node is not
    /// used: a server that delays requests may carry out only the first ones of a write, and the next attempt has to
    /// continue after these.
    void on_folder_reply(const reply& reply, const std::string& folder);

    /// The server does not support containers, so persistent folders are created instead.
    bool plain_folders_ = false;
    reply folder_failure_{.outcome = status::no_node};
};

} // namespace colock::inline v0::zookeeper::detail
