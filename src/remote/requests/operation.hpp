// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/deadlines.hpp"
#include "remote/requests/operation_allocation.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/intrusive/list_hook.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace colock::remote {

/// What an adapter asks for: some requests, and what becomes of them. On the client's strand once it was submitted.
class operation : public operation_allocation,
                  public boost::intrusive_ref_counter<operation>,
                  public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
{
public:
    operation() = default;
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    virtual ~operation() = default;

    /// Requests can be sent. Again, if they could not after all, or if their session was over before they were.
    virtual void start() = 0;
    /// Its time is over, or it is not wanted here any more; it ends with that.
    virtual void fail(delivery how, failure_ptr why) = 0;
    /// While it was not started: nobody waits for it, and it gives nothing back.
    [[nodiscard]] virtual bool unwanted() const noexcept { return false; }
    /// It may share a request with others that do.
    [[nodiscard]] virtual bool joins() const noexcept { return false; }

    lease_clock::time_point deadline{};
    /// Number of times that operations in flight were given up before this one was started, see `operation_queue`.
    unsigned generation = 0;
};
using operation_ptr = boost::intrusive_ptr<operation>;

} // namespace colock::remote
