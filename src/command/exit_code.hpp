// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <stdexcept>
#include <string>

namespace command {

/// Exit codes of colock itself. `run`, `lead` and `adopt` otherwise exit with the code of their child, or with
/// 128 + n if the signal n has ended it.
enum exit_code : int
{
    success = 0,
    /// `doctor` has found a failure, or the user of `break` has answered no.
    failure = 1,
    /// The command line, the key or a file that the command line names is wrong, or the backend does not support the
    /// operation.
    usage = 64,
    /// The backend cannot be reached or does not answer.
    unavailable = 69,
    /// The lock is busy.
    busy = 75,
    /// The backend denies access.
    access_denied = 77,
    /// The configuration of the backend does not allow correct locking.
    misconfigured = 78,
    /// The lock was lost before the child had ended.
    lost = 79,
    /// The child cannot be executed.
    not_executable = 126,
    /// The program of the child was not found.
    not_found = 127,
};

/// Ends colock with an exit code and one line on stderr.
class exit_error : public std::runtime_error
{
public:
    exit_error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

/// A mistake in the command line. The message names the value and the remedy.
class usage_error : public exit_error
{
public:
    explicit usage_error(const std::string& message) : exit_error(usage, message) {}
};

/// Writes one line to stderr, with the name of the program before it.
void print_line(const std::string& text);

/// Returns the exit code for the exception that is being handled, after writing its message to stderr as one line.
/// \param busy_code the exit code for a busy lock
[[nodiscard]] int report_current_exception(int busy_code = busy);

} // namespace command
