// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/deadlines.hpp"
#include "remote/requests/operation_allocation.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/intrusive/list_hook.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace colock::inline v0::remote {

/// An operation of an adapter: its requests and its completion. Used only on the client's strand after it was
/// submitted.
class operation : public operation_allocation,
                  public boost::intrusive_ref_counter<operation>,
                  public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
{
public:
    operation() = default;
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    virtual ~operation() = default;

    /// Called when requests can be sent. Called again if the requests could not be sent, or if their session ended
    /// before they were sent.
    virtual void start() = 0;
    /// Ends the operation with a failure, because its deadline has passed or it is not wanted any more.
    virtual void fail(delivery status, failure_ptr failure) = 0;
    /// Returns whether an operation that was not started can be dropped, because no caller waits for it and it releases
    /// nothing.
    [[nodiscard]] virtual bool unwanted() const noexcept { return false; }
    /// Returns whether the claim of the operation has a place in a queue that the backend keeps. Thousands of such
    /// claims may be woken at once. So while requests can be sent, the time in which their operations wait to be
    /// started does not count toward the operation timeout.
    [[nodiscard]] virtual bool is_queued_at_backend() const noexcept { return false; }
    /// Returns whether the operation may share a request with other operations.
    [[nodiscard]] virtual bool is_batchable() const noexcept { return false; }

    lease_clock::time_point deadline{};
    /// Number of times that operations in flight were given up before this one was started, see `operation_queue`.
    unsigned generation = 0;
};
using operation_ptr = boost::intrusive_ptr<operation>;

} // namespace colock::inline v0::remote
