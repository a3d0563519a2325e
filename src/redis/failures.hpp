// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/reply.hpp"

#include <colock/spi/adapter.hpp>

#include <string>
#include <string_view>

namespace colock::redis::detail {

/// The server's own error, without what an older server wraps around one that a script has met.
[[nodiscard]] std::string_view unwrapped(std::string_view error) noexcept;
/// The first word of that error: "WRONGTYPE", "OOM", ...
[[nodiscard]] std::string_view error_word(std::string_view error) noexcept;

[[nodiscard]] bool is_readonly(std::string_view error) noexcept;
[[nodiscard]] bool is_noscript(const reply& answer) noexcept;

/// The user may not run the command, whatever its keys and channels, or the server does not know it.
[[nodiscard]] bool is_command_refused(std::string_view error) noexcept;

/// One for each reason for which a server refuses all work for a while; empty for any other error.
[[nodiscard]] error_code server_code(std::string_view error) noexcept;
/// Why a command was refused: a refused command has changed nothing.
[[nodiscard]] errc refusal_code(std::string_view error) noexcept;
[[nodiscard]] failure_ptr refusal(std::string_view error);
/// Why there is no connection. \param code as `link::loss` has it
[[nodiscard]] failure_ptr lost_connection(const error_code& code);
/// For a reply of an unexpected shape, or an error.
[[nodiscard]] failure_ptr refusal(const reply& answer);

} // namespace colock::redis::detail
