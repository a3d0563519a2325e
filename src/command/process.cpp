// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/process.hpp"

#include "command/exit_code.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

namespace command {

namespace {

/// The signals that colock ignores itself, because a write to a closed connection or to the terminal must not end or
/// stop a process that holds a lock.
constexpr std::array ignored_by_colock{SIGPIPE, SIGTTIN, SIGTTOU};

struct sigaction current_action(int signal)
{
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    return action;
}

void set_handler(int signal, sighandler_t handler) noexcept
{
    struct sigaction action = {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
}

/// Pointers to the texts, and a null pointer, as exec needs them.
std::vector<char*> pointers_to(std::span<std::string> texts)
{
    std::vector<char*> result;
    for (std::string& each : texts)
        result.push_back(each.data());
    result.push_back(nullptr);
    return result;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables)
{
    std::vector<std::string> result;
    for (char** each = environ; *each; ++each) {
        const std::string_view entry = *each;
        const auto has_name = [&](const auto& variable) {
            return entry.starts_with(variable.first) && entry.substr(variable.first.size()).starts_with('=');
        };
        if (std::ranges::none_of(variables, has_name))
            result.emplace_back(entry);
    }
    for (const auto& [name, value] : variables)
        result.push_back(name + '=' + value);
    return result;
}

/// Returns whether the process of a folder in /proc belongs to the group, and has not ended.
bool runs_in_group(const std::filesystem::path& process, pid_t group)
{
    // The text is empty if the process has ended meanwhile, or if this is another folder.
    std::ifstream file(process / "stat");
    std::string text;
    std::getline(file, text, '\0');
    // The name of the program, in parentheses, may contain any character.
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos)
        return false;
    std::istringstream fields(text.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    pid_t found_group = 0;
    fields >> state >> parent >> found_group;
    if (found_group != group)
        return false;
    std::string skipped;
    for (int i = 0; i < 14; ++i)
        fields >> skipped;
    int thread_count = 0;
    fields >> thread_count;
    // The first thread of a process may have ended while others run.
    return (state != 'Z' && state != 'X') || thread_count > 1;
}

/// Blocks all signals until it is destroyed, so that no handler of the parent runs in the child.
class signal_mask_guard
{
public:
    signal_mask_guard()
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &previous_);
    }
    signal_mask_guard(const signal_mask_guard&) = delete;
    signal_mask_guard& operator=(const signal_mask_guard&) = delete;
    ~signal_mask_guard() { restore(); }

    void restore() const noexcept { ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

private:
    sigset_t previous_;
};

/// Sets all signals that have a handler to their default. exec does the same, but a signal before exec would call the
/// handler, which writes to a pipe of the parent.
void reset_handlers() noexcept
{
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction action = {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
            set_handler(signal, SIG_DFL);
    }
}

} // namespace

inherited_state::inherited_state()
{
    for (std::size_t i = 0; i < actions_.size(); ++i) {
        actions_[i] = {.signal = ignored_by_colock[i], .action = current_action(ignored_by_colock[i])};
        set_handler(ignored_by_colock[i], SIG_IGN);
    }
    for (int standard = 0; standard <= 2; ++standard) {
        // open() returns the lowest free descriptor.
        if (::fcntl(standard, F_GETFD) == -1 && ::open("/dev/null", O_RDWR) == standard)
            filled_descriptors_.push_back(standard);
    }
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int descriptor = std::stoi(each.path().filename().string());
        if (descriptor > 2)
            open_descriptors_.push_back(descriptor);
    }
    std::ranges::sort(open_descriptors_);
    // The list contains the descriptor of the list itself, which is closed now.
    std::erase_if(open_descriptors_, [](int descriptor) { return ::fcntl(descriptor, F_GETFD) == -1; });
}

bool inherited_state::is_ignored(int signal)
{
    return current_action(signal).sa_handler == SIG_IGN;
}

bool inherited_state::restore_in_child() const noexcept
{
    for (const saved_action& each : actions_)
        ::sigaction(each.signal, &each.action, nullptr);
    for (const int descriptor : filled_descriptors_)
        ::close(descriptor);
    // Everything between the inherited descriptors was opened by colock or its drivers.
    unsigned first = 3;
    for (const int descriptor : open_descriptors_) {
        const auto kept = static_cast<unsigned>(descriptor);
        if (first < kept && ::close_range(first, kept - 1, CLOSE_RANGE_CLOEXEC) != 0)
            return false;
        first = kept + 1;
    }
    return ::close_range(first, std::numeric_limits<unsigned>::max(), CLOSE_RANGE_CLOEXEC) == 0;
}

child_group::child_group(const inherited_state& inherited, std::vector<std::string> words,
    const std::vector<std::pair<std::string, std::string>>& variables)
{
    // Orphans of the group become children of this process, which can then collect them.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    has_terminal_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();

    // Everything that allocates memory is done before the fork, because another thread may own a mutex of the C
    // library.
    auto environment = environment_with(variables);
    const auto word_pointers = pointers_to(words);
    const auto environment_pointers = pointers_to(environment);
    std::array<int, 2> failure_pipe{};
    if (::pipe2(failure_pipe.data(), O_CLOEXEC) != 0)
        throw exit_error(not_executable, words.front() + " cannot be started: " + std::strerror(errno));
    const pid_t parent = ::getpid();
    {
        const signal_mask_guard guard;
        pid_ = ::fork();
        if (pid_ == 0) {
            reset_handlers();
            ::setpgid(0, 0);
            if (has_terminal_)
                ::tcsetpgrp(STDIN_FILENO, ::getpid());
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent)
                ::_exit(not_executable);
            if (inherited.restore_in_child()) {
                guard.restore();
                ::execvpe(word_pointers.front(), word_pointers.data(), environment_pointers.data());
            }
            const int problem = errno;
            static_cast<void>(!::write(failure_pipe[1], &problem, sizeof problem));
            ::_exit(problem == ENOENT ? not_found : not_executable);
        }
    }
    ::close(failure_pipe[1]);
    int problem = pid_ == -1 ? errno : 0;
    if (pid_ != -1) {
        // Both processes do this, so that it is done whichever of them runs first.
        ::setpgid(pid_, pid_);
        give_terminal();
        // A successful exec closes the child's end (close-on-exec), and read returns 0 bytes.
        while (::read(failure_pipe[0], &problem, sizeof problem) == -1 && errno == EINTR) {
        }
    }
    ::close(failure_pipe[0]);
    if (problem != 0) {
        if (pid_ != -1)
            ::waitpid(pid_, nullptr, 0);
        take_terminal();
        throw exit_error(problem == ENOENT ? not_found : not_executable,
            words.front() + " cannot be executed: " + std::strerror(problem));
    }
}

child_group::~child_group()
{
    take_terminal();
}

void child_group::reap()
{
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
        if (pid != pid_)
            continue;
        if (WIFSTOPPED(status)) {
            is_stopped_ = true;
            take_terminal();
        } else if (WIFCONTINUED(status)) {
            is_stopped_ = false;
        } else {
            is_stopped_ = false;
            exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
}

bool child_group::has_members() const
{
    if (::kill(-pid_, 0) != 0)
        return errno != ESRCH;
    // A process that has ended stays in the group until its parent, which may have left the group, collects it.
    std::error_code problem;
    for (const auto& each : std::filesystem::directory_iterator("/proc", problem)) {
        if (runs_in_group(each.path(), pid_))
            return true;
    }
    return static_cast<bool>(problem);
}

void child_group::send(int signal) noexcept
{
    if (signal == SIGCONT && is_stopped_)
        give_terminal();
    ::kill(-pid_, signal);
    if (!exit_code_ && ::getpgid(pid_) != pid_) // The child has moved to another group of its session.
        ::kill(pid_, signal);
}

void child_group::send_and_continue(int signal) noexcept
{
    send(signal);
    // Without a check of `is_stopped_`: reap() may not have noticed the stop yet, and notices only that of the child.
    ::kill(-pid_, SIGCONT);
}

void child_group::give_terminal() noexcept
{
    if (has_terminal_)
        ::tcsetpgrp(STDIN_FILENO, pid_);
}

void child_group::take_terminal() noexcept
{
    if (has_terminal_)
        ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
}

} // namespace command
