// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace colock::testing {

std::string from_environment(const char* name, std::string otherwise)
{
    const char* const value = std::getenv(name);
    return value && *value ? value : std::move(otherwise);
}

std::filesystem::path cache_folder()
{
    const char* const home = std::getenv("HOME");
    return from_environment("XDG_CACHE_HOME", std::string(home ? home : "") + "/.cache") + "/colock";
}

pid_t in_child(const std::function<void()>& act)
{
    const pid_t child = ::fork();
    if (child != 0)
        return child;
    try {
        act();
    } catch (...) {
        ::_exit(1);
    }
    ::_exit(0);
}

int wait_for(pid_t child)
{
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

child_process::child_process(
    const std::vector<std::string>& command, const std::filesystem::path& log, std::optional<int> standard_io)
    : log_(log)
{
    std::vector<char*> words;
    for (const auto& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    id_ = ::fork();
    if (id_ < 0)
        throw std::system_error(errno, std::generic_category(), "fork");
    if (id_ > 0)
        return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = ::open(log_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(standard_io.value_or(file), 1);
    ::dup2(file, 2);
    if (standard_io)
        ::dup2(*standard_io, 0);
    ::execvp(words[0], words.data());
    ::_exit(127);
}

child_process::child_process(child_process&& other) noexcept
    : id_(std::exchange(other.id_, -1)), log_(std::move(other.log_))
{
}

child_process& child_process::operator=(child_process&& other) noexcept
{
    kill();
    id_ = std::exchange(other.id_, -1);
    log_ = std::move(other.log_);
    return *this;
}

child_process::~child_process()
{
    kill();
}

bool child_process::alive()
{
    if (id_ < 0 || ::waitpid(id_, nullptr, WNOHANG) == 0)
        return id_ >= 0;
    id_ = -1;
    return false;
}

std::string child_process::log_tail() const
{
    std::ifstream log(log_);
    std::string all{std::istreambuf_iterator<char>(log), {}};
    constexpr std::size_t max_size = 2000;
    return all.size() <= max_size ? all : all.substr(all.size() - max_size);
}

void child_process::signal(int number) const
{
    // After the end of the process its id may belong to another process.
    if (id_ <= 0)
        return;
    ::kill(id_, number);
    // A stop is asynchronous: the threads of the process continue until it is reported.
    ::siginfo_t stopped;
    if (number == SIGSTOP)
        ::waitid(P_PID, static_cast<::id_t>(id_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

void child_process::kill() noexcept
{
    if (id_ < 0)
        return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
}

} // namespace colock::testing
