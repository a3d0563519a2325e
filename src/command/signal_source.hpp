// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/signal_set.hpp>

#include <functional>
#include <utility>

namespace command {

/// Receives SIGCHLD and the signals that are forwarded to a child. A signal that this process has inherited as ignored,
/// as under nohup, stays ignored.
class signal_source
{
public:
    using handler = std::function<void(int signal)>;

    explicit signal_source(const boost::asio::any_io_executor& executor);

    /// Sets the function that is called for each signal, on the executor. Without one, signals have no effect.
    void set_handler(handler function) { handler_ = std::move(function); }

private:
    void wait();

    boost::asio::signal_set signals_;
    handler handler_;
};

/// Returns whether the signal asks the child to end: SIGTERM, SIGINT or SIGHUP.
[[nodiscard]] bool is_terminating(int signal) noexcept;

} // namespace command
