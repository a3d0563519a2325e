// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <colock/clock.hpp>

#include <boost/system/error_code.hpp>

#include <cstdint>
#include <string>

struct _mongoc_client_t;

namespace colock::inline v0::mongo::detail {

/// Result of a command, reported by the server or by the driver.
struct answer
{
    enum class kind : unsigned char
    {
        /// The command was carried out. `reply` contains the server's reply.
        done,
        /// The server replied with an error, before or after it has carried out the command: see `judge`.
        refused,
        /// The command could not be sent.
        unsent,
        /// The outcome is unknown: the command may have been carried out.
        unknown,
    };
    kind outcome = kind::unsent;
    /// Error code of the server. 0: the server reported none, or the driver reported the failure.
    std::int32_t code = 0;
    /// Text of the server or the driver.
    std::string text{};
    /// Error of the connection, if the driver reported the failure.
    boost::system::error_code cause{};
    document reply{};
    /// Time immediately before the command was sent.
    lease_clock::time_point sent_at{};
    /// The connection cannot be used for another command: it was lost, or its server does not accept writes.
    bool ends_connection = false;
    /// The driver does not support the server's version, because it is too old.
    bool is_too_old = false;
    /// The command had several statements. If the server replied with an error, it may have carried out some of them.
    bool is_of_batch = false;

    /// Records the cause of a lost connection, which the driver does not know. The driver does not always report
    /// whether the command was sent, either: newer drivers (seen with 1.30) report "no suitable servers" if the server
    /// stops responding.
    /// \param was_sent whether bytes of the command may have reached the server
    void set_cause(const boost::system::error_code& error, bool was_sent);
};

/// AuthenticationFailed. The driver does not report the server's own code of a failed authentication. It reports the
/// same error for a server that does not prove that it knows the password.
inline constexpr std::int32_t authentication_failed = 18;

/// ImmutableField: MongoDB's code for a statement that colock makes fail on purpose, so that it changes nothing. Other
/// servers use another code, which `server_check` determines. In the reply to any command except an update with several
/// statements, the code means that the document of the key belongs to another program.
inline constexpr std::int32_t changes_nothing = 66;

/// Translates an error of the driver into an answer.
/// \param domain error domain of the driver, to which `code` belongs
[[nodiscard]] answer judge_failure(std::uint32_t domain, std::uint32_t code, std::string text);

/// Returns the answer to a command that is not sent, because its server is not the primary.
/// \param state what the server is instead
[[nodiscard]] answer make_not_primary(std::string state);

/// Sends one command to the server that the driver is connected to, and waits for the reply. Must be called on a fiber.
[[nodiscard]] answer ask(::_mongoc_client_t& driver, const std::string& database, const document& request) noexcept;

} // namespace colock::inline v0::mongo::detail
