// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace colock::inline v0::mongo::detail {

/// Header of a message of MongoDB's protocol.
struct message_header
{
    static constexpr std::size_t size = 16;

    [[nodiscard]] static message_header read(std::span<const std::byte, size> from) noexcept;

    /// Length of the message, with its header.
    std::int32_t length = 0;
    std::int32_t id = 0;
    /// In a reply: the id of the request.
    std::int32_t response_to = 0;
    std::int32_t op_code = 0;
};

/// Rules that a reply has to satisfy before the driver sees it. libmongoc 1.23 ends the process if some of them are
/// broken, and takes the reply to another request for the answer.
enum class reply_violation : unsigned char
{
    /// The header states a length that no message has.
    length = 1,
    /// The type of the message is not that of a reply to the request.
    op_code,
    /// The message is compressed, which colock never requests.
    compression,
    /// The message is the reply to another request.
    response_to,
    /// Bytes follow the reply, or were sent without a request.
    surplus,
    flags,
    /// The message does not contain exactly one document.
    sections,
    /// The document is not valid BSON.
    document,
    /// The document is nested deeper than servers allow.
    nesting,
    /// A field of the result has another type than servers send.
    field,
};
/// The error is equivalent to `boost::system::errc::protocol_error`.
[[nodiscard]] boost::system::error_code make_error_code(reply_violation violation) noexcept;

/// Validates the header of a reply.
[[nodiscard]] boost::system::error_code validate_header(
    const message_header& reply, const message_header& request) noexcept;

/// Validates the rest of a reply whose header is valid. Removes a checksum and its flag. Recurses for each level of the
/// document, so it must not be called on a fiber.
/// \param message the whole message; becomes shorter if a checksum was removed
[[nodiscard]] boost::system::error_code validate_body(std::span<std::byte>& message) noexcept;

} // namespace colock::inline v0::mongo::detail
