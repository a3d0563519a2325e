// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/name_lookup_pool.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <memory>
#include <string>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::remote {

/// One lookup of a host name. The wait for its result is an ordinary operation of the caller's execution context: it
/// counts as work, it can be cancelled at once, and the destruction of the context ends it. The lookup itself runs on a
/// thread of the pool, which goes on after a cancellation.
///
/// Thread safety: none. A pending operation keeps the object alive.
class name_lookup : public std::enable_shared_from_this<name_lookup>
{
public:
    using handler = asio::any_completion_handler<void(name_result)>;

    explicit name_lookup(
        const asio::any_io_executor& executor, std::shared_ptr<name_lookup_pool> pool = name_lookup_pool::of_process());

    /// Must be called once. The handler is called on the executor, never from inside of this call.
    void start(const std::string& host, handler on_end);
    /// Ends the wait: the handler receives the failure `unanswered`.
    void cancel() noexcept;

private:
    const std::shared_ptr<name_lookup_pool> pool_;
    asio::posix::stream_descriptor ready_;
    std::shared_ptr<name_waiter> waiter_;
};

} // namespace colock::inline v0::remote
