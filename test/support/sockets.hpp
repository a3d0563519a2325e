// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace colock::testing {

/// A port of 127.0.0.1 that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();

/// Starts a server on a port that was free a moment ago; on another one if somebody else has taken that meanwhile.
/// \throws what the last of several attempts throws
void on_free_port(const std::function<void(std::uint16_t)>& start);

/// A blocking socket to a server on 127.0.0.1 that gives up a read after half a minute; -1 if none listens there.
[[nodiscard]] int connect_to(std::uint16_t port);

/// \throws std::runtime_error if the other end has closed.
void write_all(int socket, std::string_view text);

class child_process;
/// Waits until the program listens on its port.
/// \throws std::runtime_error with `why_not` if it ends before, or does not listen within half a minute.
void wait_until_serving(child_process& program, std::uint16_t port, const char* why_not);

} // namespace colock::testing
