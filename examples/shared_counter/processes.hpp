// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/// Runs `work` in a child process. Its exit code is 0, or 1 after an exception.
inline pid_t start_process(const std::function<void()>& work)
{
    std::cout << std::flush; // otherwise both processes would print the buffered text
    const pid_t child = ::fork();
    if (child < 0)
        throw std::system_error(errno, std::generic_category(), "fork");
    if (child > 0)
        return child;
    int result = 0;
    try {
        work();
    } catch (const std::exception& failure) {
        std::cerr << "error: " << failure.what() << std::endl;
        result = 1;
    }
    std::_Exit(result);
}

/// Waits until the process ends or stops. Returns false if it failed.
inline bool wait_for(pid_t child)
{
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    return WIFSTOPPED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

enum class event
{
    adding,
    added,
    finished,
};

/// The pipe by which workers report events to their supervisor.
class event_pipe
{
public:
    struct message
    {
        pid_t from;
        event kind;
    };

    event_pipe()
    {
        if (::pipe(ends_) != 0)
            throw std::system_error(errno, std::generic_category(), "pipe");
    }
    void send(event kind) const
    {
        const message notice{::getpid(), kind};
        if (::write(ends_[1], &notice, sizeof notice) != sizeof notice)
            throw std::runtime_error("the supervisor does not listen");
    }
    message receive() const
    {
        pollfd next{ends_[0], POLLIN, 0};
        message received{};
        if (::poll(&next, 1, 30'000) != 1 || ::read(ends_[0], &received, sizeof received) != sizeof received)
            throw std::runtime_error("the workers have been silent for half a minute");
        return received;
    }

private:
    int ends_[2];
};
