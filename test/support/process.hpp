// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace colock::testing {

/// Folder into which scripts/setup.sh puts files that cannot be installed as packages.
[[nodiscard]] std::filesystem::path cache_folder();

/// Returns the value of an environment variable, or `otherwise` if the variable is unset or empty.
[[nodiscard]] std::string from_environment(const char* name, std::string otherwise);

/// Runs `act` in a child process, which exits when `act` returns.
pid_t in_child(const std::function<void()>& act);
/// Waits for the end of the process. Returns the status of waitpid: 0 if `act` returned.
int wait_for(pid_t child);

/// A child process that runs another program. The destructor kills the process.
class child_process
{
public:
    child_process() = default;
    /// \param standard_io a socket that becomes the standard input and output of the program. Without it, standard
    /// output goes to the log.
    explicit child_process(
        const std::vector<std::string>& command, const std::filesystem::path& log, std::optional<int> standard_io = {});
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    ~child_process();

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    [[nodiscard]] bool alive();
    /// Returns the end of the log.
    [[nodiscard]] std::string log_tail() const;
    void signal(int number) const;
    /// Sends SIGKILL and waits for the end of the process.
    void kill() noexcept;

private:
    pid_t id_ = -1;
    std::filesystem::path log_;
};

} // namespace colock::testing
