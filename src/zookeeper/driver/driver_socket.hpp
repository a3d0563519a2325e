// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/socket_waiter.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/error_code.hpp>

#include <utility>

namespace colock::zookeeper::detail {

/// The driver's socket, waited for: one wait for each direction, and what is written in one turn goes out together.
///
/// Thread safety: none.
class driver_socket
{
public:
    explicit driver_socket(const asio::any_io_executor& executor) : socket_(executor) {}

    [[nodiscard]] socket_waiter& socket() noexcept { return socket_; }

    /// True if that is another socket than before.
    bool follow(int drivers, bool stood)
    {
        if (!socket_.follow(drivers, stood))
            return false;
        reading_ = writing_ = false;
        return true;
    }
    /// \param ready called with whether it is there to be read; keeps this
    template <class Ready>
    void listen(bool reads, bool writes, Ready ready)
    {
        if (reads && !std::exchange(reading_, true))
            socket_.wait_readable(when_ended(reading_, [ready] { ready(true); }));
        if (writes && !std::exchange(writing_, true))
            socket_.wait_writable(when_ended(writing_, [this, ready] {
                socket_.end_wait_writable();
                ready(false);
            }));
    }

    void hold_back() noexcept
    {
        if (!std::exchange(corked_, true))
            socket_.cork(true);
    }
    void release_in_background() noexcept
    {
        if (std::exchange(corked_, false))
            socket_.cork(false);
    }

private:
    /// Unless the wait was of another socket.
    template <class Then>
    [[nodiscard]] auto when_ended(bool& armed, Then then)
    {
        return [this, &armed, then, number = socket_.number()](const boost::system::error_code& failed) {
            if (failed || number != socket_.number())
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

} // namespace colock::zookeeper::detail
