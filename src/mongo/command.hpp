// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/document.hpp"
#include "mongo/lane.hpp"

#include <cstdint>
#include <string>

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
    document reply{};
    /// Nothing else may be asked on that lane: it is not connected any more, or to a server that takes no writes.
    bool spoils = false;
};

/// What a failed command means.
/// \param domain the driver's, as is `code`
[[nodiscard]] answer judge_failure(std::uint32_t domain, std::uint32_t code, std::string why);

/// One command to the server that a lane is connected to.
class command : public task
{
public:
    /// \param database that it is sent to
    command(std::string database, document asked);

    [[nodiscard]] const answer& got() const noexcept { return got_; }
    [[nodiscard]] bool spoils() const noexcept final { return got_.spoils; }

private:
    void perform(::_mongoc_client_t& driver) noexcept final;

    const std::string database_;
    const document asked_;
    answer got_;
};

} // namespace colock::mongo::detail
