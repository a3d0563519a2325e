// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/socket_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/descriptor_base.hpp>
#include <boost/system/error_code.hpp>

#include <utility>

namespace colock::zookeeper::detail {

/// The driver's socket, waited for: one wait for each direction, and what is written in one turn goes out together.
///
/// Thread safety: none.
class wire
{
public:
    explicit wire(const asio::any_io_executor& executor) : socket_(executor) {}

    [[nodiscard]] socket_watch& socket() noexcept { return socket_; }

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
    void listen(bool writes, Ready ready)
    {
        using descriptor = asio::posix::descriptor_base;
        begin(reading_, descriptor::wait_read, [ready] { ready(true); });
        if (writes)
            begin(writing_, descriptor::wait_write, [ready] { ready(false); });
    }

    void hold_back() noexcept
    {
        if (!std::exchange(corked_, true))
            socket_.cork(true);
    }
    void let_go() noexcept
    {
        if (std::exchange(corked_, false))
            socket_.cork(false);
    }

private:
    template <class Then>
    void begin(bool& armed, asio::posix::descriptor_base::wait_type what, Then then)
    {
        if (std::exchange(armed, true))
            return;
        socket_.wait(what, [this, &armed, then, number = socket_.number()](const boost::system::error_code& failed) {
            if (failed || number != socket_.number())
                return;
            armed = false;
            then();
        });
    }

    socket_watch socket_;
    bool reading_ = false;
    bool writing_ = false;
    bool corked_ = false;
};

} // namespace colock::zookeeper::detail
