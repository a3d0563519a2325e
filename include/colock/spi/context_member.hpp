// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace colock::inline v0 {

namespace asio = boost::asio;

/// Base class of objects that must destroy their timers, strands, sockets and stored handlers before their execution
/// context is destroyed. To destroy one of them afterwards is a use after free. An adapter overrides
/// `adapter::context_shutdown` instead; this class is for objects that may outlive the adapter.
class COLOCK_EXPORT context_member
{
public:
    virtual ~context_member() = default;

    /// Called once during the shutdown of the context, when the context runs no more threads. Destroying handlers here
    /// may destroy coroutines, and with them locks and lockers.
    virtual void context_shutdown() noexcept = 0;
};

/// Registers `member` for the notifications of the context of `executor`. Keeps a weak reference.
///
/// Thread safety: may be called from any thread.
COLOCK_EXPORT void join_context(const asio::any_io_executor& executor, std::weak_ptr<context_member> member);

} // namespace colock::inline v0
