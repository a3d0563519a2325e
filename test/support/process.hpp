// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace colock::testing {

/// Where scripts/setup.sh puts what cannot be installed.
[[nodiscard]] std::filesystem::path cache_folder();

/// What the variable says, unless it is empty.
[[nodiscard]] std::string from_environment(const char* name, std::string otherwise);

/// Runs `act` in a process of its own, which ends with it.
pid_t in_child(const std::function<void()>& act);
/// What waitpid tells of its end: 0 if `act` returned.
int wait_for(pid_t child);

/// Another program, killed with its object.
class child_process
{
public:
    child_process() = default;
    /// `talk`: a socket that becomes its standard input and output; without, what it prints goes to the log too.
    explicit child_process(
        const std::vector<std::string>& command, const std::filesystem::path& log, std::optional<int> talk = {});
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    ~child_process();

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    [[nodiscard]] bool alive();
    /// The end of its log.
    [[nodiscard]] std::string last_words() const;
    void signal(int number) const;
    /// SIGKILL, and waits for its end.
    void kill() noexcept;

private:
    pid_t id_ = -1;
    std::filesystem::path log_;
};

} // namespace colock::testing
