// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"

#include <colock/spi/adapter.hpp>

#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// Returns the server's own error. Removes the text that Redis 6.2 adds around an error of a command in a
/// script.
[[nodiscard]] std::string_view unwrapped(std::string_view error) noexcept;
/// Returns the first word of the server's own error: "WRONGTYPE", "OOM", ...
[[nodiscard]] std::string_view error_word(std::string_view error) noexcept;

[[nodiscard]] bool is_readonly(std::string_view error) noexcept;
[[nodiscard]] bool is_noscript(const reply& answer) noexcept;
/// Tells whether a node of a cluster has referred the client to another node.
[[nodiscard]] bool is_redirection(const reply& answer) noexcept;

/// Tells whether the user may not run the command on any key or channel, or the server does not know the command.
[[nodiscard]] bool is_command_refused(std::string_view error) noexcept;
/// Tells whether the server does not know the command.
[[nodiscard]] bool is_command_unknown(std::string_view error) noexcept;

/// Returns the error code of a temporary state of the server, in which it refuses all or some requests. Empty for any
/// other error.
[[nodiscard]] error_code server_code(std::string_view error) noexcept;
/// Classifies a refused command. A refused command has changed nothing.
[[nodiscard]] errc refusal_code(std::string_view error) noexcept;
[[nodiscard]] failure_ptr refusal(std::string_view error);
/// Describes why there is no connection.
/// \param address the server
/// \param error result of `server_connection::translate_error`
[[nodiscard]] failure_ptr lost_connection(const std::string& address, const error_code& error);
/// Describes a reply that is an error or has an unexpected shape.
[[nodiscard]] failure_ptr refusal(const reply& answer);

} // namespace colock::inline v0::redis::detail
