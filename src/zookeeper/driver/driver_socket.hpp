// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/socket_waiter.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/error_code.hpp>

#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// Waits for the driver's socket, with at most one wait for each direction. Holds back written data, so that everything
/// that is written in one event-loop iteration is sent together.
///
/// Thread safety: none.
class driver_socket
{
public:
    explicit driver_socket(const asio::any_io_executor& executor) : socket_(executor) {}

    [[nodiscard]] socket_waiter& waiter() noexcept { return socket_; }

    /// Uses the driver's current socket from now on. Returns true if this is another socket than at the last call. The
    /// parameters are those of `socket_waiter::follow`.
    bool follow(int driver_descriptor, bool was_connected)
    {
        if (!socket_.follow(driver_descriptor, was_connected))
            return false;
        reading_ = writing_ = false;
        return true;
    }
    /// Starts to wait for the directions for which no wait is in progress.
    /// \param ready called with true when the socket is readable, with false when it is writable; has to keep this
    /// object alive
    template <class Ready>
    void start_waits(bool reads, bool writes, Ready ready)
    {
        if (reads && !std::exchange(reading_, true))
            socket_.wait_readable(make_wait_handler(reading_, [ready] { ready(true); }));
        if (writes && !std::exchange(writing_, true))
            socket_.wait_writable(make_wait_handler(writing_, [this, ready] {
                socket_.end_wait_writable();
                ready(false);
            }));
    }

    void cork() noexcept
    {
        if (!std::exchange(corked_, true))
            socket_.cork(true);
    }
    void uncork() noexcept
    {
        if (std::exchange(corked_, false))
            socket_.cork(false);
    }

private:
    /// Returns a handler that calls `then` unless the wait has failed or belonged to an earlier socket.
    template <class Then>
    [[nodiscard]] auto make_wait_handler(bool& armed, Then then)
    {
        return [this, &armed, then, number = socket_.number()](const boost::system::error_code& error) {
            if (error || number != socket_.number())
                return;
            armed = false;
            then();
        };
    }

    socket_waiter socket_;
    bool reading_ = false;
    bool writing_ = false;
    bool corked_ = false;
};

} // namespace colock::inline v0::zookeeper::detail
