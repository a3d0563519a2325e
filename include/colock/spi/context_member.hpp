// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace colock {

namespace asio = boost::asio;

/// Something that must let go of its timers, strands, sockets and stored handlers before its execution context dies:
/// to destroy one of those afterwards is a use after free. An adapter that has any is one, or has a part that is.
class context_member
{
public:
    virtual ~context_member() = default;

    /// Called once, from the context's shutdown; its threads have ended. Handlers that are dropped here may destroy
    /// coroutines, and with them locks and lockers.
    virtual void context_shutdown() noexcept = 0;
    /// Called in the child after the context was told of a fork; nothing of the context runs meanwhile, and what it
    /// had yet to run is still to come. No timer may be armed: the context may still share its own with the parent.
    virtual void context_forked() noexcept {}
};

/// From now on `member`, as long as it lives, is told what happens to the context of `executor`.
///
/// Thread safety: may be called from any thread.
void join_context(const asio::any_io_executor& executor, std::weak_ptr<context_member> member);

} // namespace colock
