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

/// Runs `work` in a process of its own, which ends with 0, or with 1 after an exception.
inline pid_t start_process(const std::function<void()>& work)
{
    std::cout << std::flush; // what is in the buffer would be printed by both
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

/// Waits for a process to end, or to stop. False if it failed.
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

/// What workers tell their supervisor.
class report_line
{
public:
    struct message
    {
        pid_t from;
        event what;
    };

    report_line()
    {
        if (::pipe(ends_) != 0)
            throw std::system_error(errno, std::generic_category(), "pipe");
    }
    void say(event what) const
    {
        const message said{::getpid(), what};
        if (::write(ends_[1], &said, sizeof said) != sizeof said)
            throw std::runtime_error("the supervisor does not listen");
    }
    message hear() const
    {
        pollfd next{ends_[0], POLLIN, 0};
        message heard{};
        if (::poll(&next, 1, 30'000) != 1 || ::read(ends_[0], &heard, sizeof heard) != sizeof heard)
            throw std::runtime_error("the workers have been silent for half a minute");
        return heard;
    }

private:
    int ends_[2];
};
