// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace command {

/// The signal actions and descriptors that this process has inherited, which the child gets unchanged.
///
/// Made before anything opens a descriptor: descriptors 0 to 2 that are closed are filled, so that no socket of colock
/// becomes the standard input of the child.
class inherited_state
{
public:
    /// Ignores SIGPIPE, SIGTTIN and SIGTTOU, and opens /dev/null as each of the descriptors 0 to 2 that is closed.
    inherited_state();

    /// Returns whether this process was started with this signal ignored, as by nohup. Such a signal is not forwarded.
    [[nodiscard]] static bool is_ignored(int signal);
    /// Restores the inherited actions, closes the descriptors that were filled, and marks all descriptors that were not
    /// inherited as close-on-exec. Async-signal-safe.
    /// \return whether this has succeeded
    [[nodiscard]] bool restore_in_child() const noexcept;

private:
    struct saved_action
    {
        int signal = 0;
        struct sigaction action = {};
    };

    std::array<saved_action, 3> actions_{};
    std::vector<int> open_descriptors_;
    std::vector<int> filled_descriptors_;
};

/// The child and its process group.
class child_group
{
public:
    /// Starts the child in a new process group, which gets the terminal if this process has it. The kernel kills the
    /// child if this process ends.
    /// \param words the program, which is searched in PATH, and its arguments
    /// \param variables names and values that are added to the environment
    /// \throws exit_error `not_found` or `not_executable`
    child_group(const inherited_state& inherited, std::vector<std::string> words,
        const std::vector<std::pair<std::string, std::string>>& variables);
    child_group(const child_group&) = delete;
    child_group& operator=(const child_group&) = delete;
    /// Takes the terminal back.
    ~child_group();

    /// Collects the ends, stops and continuations of processes. Called after each SIGCHLD.
    void reap();
    /// Returns the exit code of the child, or 128 + n if the signal n has ended it; empty while the child runs.
    [[nodiscard]] std::optional<int> exit_code() const noexcept { return exit_code_; }
    /// Returns whether a process of the group has not ended.
    [[nodiscard]] bool has_members() const;
    /// Returns whether the child is stopped.
    [[nodiscard]] bool is_stopped() const noexcept { return is_stopped_; }

    /// Sends a signal to all processes of the group, and to the child. A signal that continues the group gives it the
    /// terminal.
    void send(int signal) noexcept;
    /// Sends a signal that asks the group to end, and continues a stopped group, so that it can react.
    void send_and_continue(int signal) noexcept;

private:
    void give_terminal() noexcept;
    void take_terminal() noexcept;

    pid_t pid_ = -1;
    std::optional<int> exit_code_;
    bool is_stopped_ = false;
    /// Whether standard input was the terminal of this process's group at the start.
    bool has_terminal_ = false;
};

} // namespace command
