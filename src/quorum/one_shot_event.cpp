// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/one_shot_event.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <new>

namespace colock::inline v0::quorum {

void one_shot_event::set()
{
    is_set_ = true;
    unlink();
    if (auto waiting = std::exchange(handler_, nullptr))
        std::move(waiting)(nullptr);
}

asio::awaitable<void> one_shot_event::wait()
{
    if (is_set_)
        co_return;
    co_await asio::async_initiate<const asio::deferred_t, void(std::exception_ptr)>(
        [this](auto handler) {
            try {
                handler_ = std::move(handler);
                awaited_.push_back(*this);
            } catch (const std::bad_alloc&) {
                // An exception that leaves the initiation would destroy the coroutine and end the event loop.
                std::move(handler)(std::current_exception());
            }
        },
        asio::deferred);
}

void one_shot_event::destroy_waiting(list& awaited) noexcept
{
    while (!awaited.empty()) {
        auto& next = awaited.front();
        awaited.pop_front();
        const auto destroyed = std::exchange(next.handler_, nullptr);
    }
}

} // namespace colock::inline v0::quorum
