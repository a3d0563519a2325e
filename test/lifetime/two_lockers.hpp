// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <list>
#include <string>

namespace colock::testing {

using namespace std::chrono_literals;

/// A locker on a backend with or without a queue, and another locker on the same store.
struct two_lockers : virtual_fixture
{
    colock::locker other_locker{memory};
    std::list<asio::cancellation_signal> signals;

    explicit two_lockers(bool fifo) : virtual_fixture(backend_kind::scripted)
    {
        auto can = script->traits().capabilities;
        can.fifo = fifo;
        script->set_capabilities(can);
        locker.emplace(backend());
    }

    [[nodiscard]] running<lock> wait_for(std::string key, acquire_options options = {})
    {
        if (options.retry.empty())
            options.retry = rarely;
        auto waiting = start(locker->acquire(std::move(key), std::move(options)));
        ready();
        return waiting;
    }
    /// Starts a waiter that is cancelled by the returned signal.
    asio::cancellation_signal& add_waiter(std::string key, acquire_options options = {})
    {
        if (options.retry.empty())
            options.retry = rarely;
        auto& cancel = signals.emplace_back();
        locker->async_acquire(
            std::move(key), std::move(options), asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
        ready();
        return cancel;
    }
    void stop(asio::cancellation_signal& cancel)
    {
        cancel.emit(asio::cancellation_type::terminal);
        ready();
    }
    [[nodiscard]] std::size_t count(operation what) const { return script->count(what); }
};

} // namespace colock::testing
