// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/adapter.hpp>
#include <colock/options.hpp>
#include <colock/stats.hpp>

#include "core/key_queues.hpp"
#include "core/lease_plan.hpp"
#include "core/parking.hpp"
#include "core/record.hpp"
#include "core/timer_heap.hpp"

#include <boost/intrusive/list.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace colock::detail {

using registry = boost::intrusive::list<record, boost::intrusive::constant_time_size<false>>;

/// What the parts of a core work on together. One mutex guards all of it that is neither const nor atomic; it is never
/// held while an adapter, an observer or a handler is called, or while anything is destroyed that could own a
/// coroutine.
struct shard
{
    shard(std::shared_ptr<adapter> backend, locker_options options)
        : backend_(std::move(backend)), can_(backend_->capabilities()), limits_(backend_->limits()),
          options_(std::move(options)), margins_{options_.minimum_validity, options_.stop_margin},
          watches_all_(options_.observer || !can_.expires), timers_(*backend_), queues_(can_.fifo, timers_)
    {
    }

    const std::shared_ptr<adapter> backend_;
    const capabilities can_;
    const adapter_limits limits_;
    const locker_options options_;
    const lease_plan::margins margins_;
    /// Somebody hears of the end of every lease, or nobody else ends it.
    const bool watches_all_;

    light_mutex mutex_;
    /// Shutting down, orphaned, or without a context: waiters end, and no acquire begins.
    std::atomic<bool> closed_to_new_{false};
    /// Its context is gone.
    std::atomic<bool> dead_{false};
    parking_lot parked_;
    timer_heap timers_;
    key_queues queues_;
    locker_stats stats_;
};

} // namespace colock::detail
