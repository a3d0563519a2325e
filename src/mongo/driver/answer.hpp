// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <colock/clock.hpp>

#include <boost/system/error_code.hpp>

#include <cstdint>
#include <string>

struct _mongoc_client_t;

namespace colock::mongo::detail {

/// What a server, or the driver, says to a command.
struct answer
{
    enum class kind : unsigned char
    {
        /// Done; `reply` has the rest.
        done,
        /// The server has refused it, and nothing has happened.
        refused,
        /// It could not be sent.
        unsent,
        /// It may have been carried out.
        unknown,
    };
    kind what = kind::unsent;
    /// Of the server; 0: the driver has failed.
    std::int32_t code = 0;
    std::string why{};
    /// What has become of the connection, if the driver has failed.
    boost::system::error_code cause{};
    document reply{};
    /// When the lane that has the answer was asked.
    lease_clock::time_point asked{};
    /// Nothing else may be asked on that lane: it is not connected any more, or to a server that takes no writes.
    bool spoils = false;

    /// The driver itself does not know why a connection has failed. Nor does it always say how far it had come: newer
    /// ones (1.30 was seen) end with "no suitable servers" when the one that was asked falls silent.
    void blame(const boost::system::error_code& failure, bool was_sent);
};

/// AuthenticationFailed. The driver does not tell the server's own code of a failed authentication, and it reports
/// alike a server that does not prove its knowledge of the password.
inline constexpr std::int32_t authentication_failed = 18;

/// ImmutableField: the code with which our statements fail on purpose if they may change nothing, as MongoDB says it.
/// Other servers have another number, which `server_check` learns. In reply to any command but an update with several
/// statements, it means that the document of the key belongs to another program.
inline constexpr std::int32_t changes_nothing = 66;

/// What a failed command means.
/// \param domain the driver's, as is `code`
[[nodiscard]] answer judge_failure(std::uint32_t domain, std::uint32_t code, std::string why);

/// The refusal of a server that takes no writes, as it words it to a write: nothing has happened.
[[nodiscard]] answer not_writable(std::string why);

/// On a fiber: one command to the server that the driver is connected to.
[[nodiscard]] answer ask(::_mongoc_client_t& driver, const std::string& database, const document& asked) noexcept;

} // namespace colock::mongo::detail
