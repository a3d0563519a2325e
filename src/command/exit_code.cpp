// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/exit_code.hpp"

#include <colock/error.hpp>

#include <cstdio>

namespace command {

namespace {

int exit_code_of(colock::errc error, int busy_code)
{
    switch (error) {
    case colock::errc::retry_exhausted:
        return busy_code;
    case colock::errc::not_held:
    case colock::errc::lost:
        return lost;
    case colock::errc::invalid_key:
    case colock::errc::invalid_ttl:
    case colock::errc::invalid_retry:
    case colock::errc::invalid_options:
    case colock::errc::unsupported:
        return usage;
    case colock::errc::access_denied:
        return access_denied;
    case colock::errc::misconfigured_backend:
        return misconfigured;
    case colock::errc::outcome_unknown:
    case colock::errc::unavailable:
    case colock::errc::shutting_down:
        break;
    }
    return unavailable;
}

} // namespace

void print_line(const std::string& text)
{
    // One call, so that the lines of several processes are not mixed.
    // The messages of the library begin with its name already.
    const std::string line = (text.starts_with("colock ") ? "" : "colock: ") + text + '\n';
    static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

int report_current_exception(int busy_code)
{
    const auto report = [](const char* message, int code) {
        print_line(message);
        return code;
    };
    try {
        throw;
    } catch (const exit_error& problem) {
        return report(problem.what(), problem.code());
    } catch (const boost::system::system_error& problem) {
        const bool is_colock_error = problem.code().category() == colock::colock_category();
        return report(problem.what(), is_colock_error
                                          ? exit_code_of(static_cast<colock::errc>(problem.code().value()), busy_code)
                                          : int{unavailable});
    } catch (const std::exception& problem) {
        return report(problem.what(), unavailable);
    }
}

} // namespace command
