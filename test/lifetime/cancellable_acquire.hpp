// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <utility>

namespace colock::testing {

/// A fixture with a scripted backend, and one acquire that can be cancelled.
struct cancellable_acquire : virtual_fixture
{
    asio::cancellation_signal cancel;
    int completions = 0;
    error_code result;
    lock granted;

    explicit cancellable_acquire(locker_options options = {})
        : virtual_fixture(backend_kind::scripted, std::move(options))
    {
    }

    void begin(acquire_options options = {})
    {
        locker->async_acquire(
            "k", std::move(options), asio::bind_cancellation_slot(cancel.slot(), [this](error_code code, lock held) {
                ++completions;
                result = code;
                granted = std::move(held);
            }));
        ready();
    }
    void stop()
    {
        cancel.emit(asio::cancellation_type::terminal);
        ready();
    }
    [[nodiscard]] std::size_t count(operation what) const { return script->count(what); }
};

} // namespace colock::testing
