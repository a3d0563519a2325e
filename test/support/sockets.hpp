// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace colock::testing {

/// Returns a port of 127.0.0.1 that was free at the time of the call. Each call of a process returns another port.
[[nodiscard]] std::uint16_t free_port();

/// Calls `start` with a free port. If the port was taken by another program meanwhile, calls it again with another
/// port.
/// \throws the exception of the last of several attempts
void on_free_port(const std::function<void(std::uint16_t)>& start);

/// Returns a blocking socket that is connected to a server on 127.0.0.1, or -1 if no server listens. A read fails after
/// 30 seconds.
[[nodiscard]] int connect_to(std::uint16_t port);

/// \throws std::runtime_error if the other end has closed the connection
void write_all(int socket, std::string_view text);

class child_process;
/// Waits until the program listens on its port.
/// \throws std::runtime_error with `why_not` if the program ends first, or does not listen within 30 seconds
void wait_until_serving(child_process& program, std::uint16_t port, const char* why_not);

} // namespace colock::testing
