// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/signal_source.hpp"

#include "command/process.hpp"

#include <csignal>

namespace command {

signal_source::signal_source(const boost::asio::any_io_executor& executor) : signals_(executor, SIGCHLD)
{
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP}) {
        if (!inherited_state::is_ignored(signal))
            signals_.add(signal);
    }
    wait();
}

void signal_source::wait()
{
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (error)
            return;
        if (handler_)
            handler_(signal);
        wait();
    });
}

bool is_terminating(int signal) noexcept
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

} // namespace command
