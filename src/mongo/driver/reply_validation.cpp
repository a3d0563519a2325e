// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/reply_validation.hpp"

#include <boost/endian/conversion.hpp>
#include <boost/system/errc.hpp>
#include <boost/system/error_category.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <bson/bson.h>

namespace colock::inline v0::mongo::detail {

namespace {

constexpr std::int32_t op_reply = 1;
constexpr std::int32_t op_query = 2004;
constexpr std::int32_t op_compressed = 2012;
constexpr std::int32_t op_msg = 2013;

/// Maximum length of a message. All servers state this value in `hello`.
constexpr std::int32_t max_length = 48'000'000;
/// The reply to an OP_QUERY is a `hello`, and comes from a peer that has not been recognized as a server yet.
constexpr std::int32_t max_hello_length = 1'000'000;
/// Servers nest no document deeper.
constexpr int max_depth = 200;

/// Flags of an OP_MSG. Receivers must ignore unknown flags of the upper half.
constexpr std::uint32_t checksum_present = 1;
constexpr std::uint32_t required_flags = 0xffff;
constexpr std::size_t checksum_size = 4;
/// Flag of an OP_REPLY to a request for more documents, which the driver does not send in this form.
constexpr std::uint32_t cursor_not_found = 1;

class violation_category final : public boost::system::error_category
{
public:
    constexpr violation_category() noexcept = default;
    [[nodiscard]] const char* name() const noexcept override { return "colock.mongo.reply"; }
    [[nodiscard]] std::string message(int which) const override { return text_of(which); }
    [[nodiscard]] boost::system::error_condition default_error_condition(int) const noexcept override
    {
        return make_error_condition(boost::system::errc::protocol_error);
    }

private:
    static const char* text_of(int which) noexcept
    {
        switch (static_cast<reply_violation>(which)) {
        case reply_violation::length:
            return "the peer is not a MongoDB server: its message has an impossible length";
        case reply_violation::op_code:
            return "the peer is not a MongoDB server: its message is not a reply";
        case reply_violation::compression:
            return "malformed reply of the server: compressed, which was not requested";
        case reply_violation::response_to:
            return "malformed reply of the server: the reply to another request";
        case reply_violation::surplus:
            return "malformed reply of the server: bytes that belong to no request";
        case reply_violation::flags:
            return "malformed reply of the server: unknown flags";
        case reply_violation::sections:
            return "malformed reply of the server: not exactly one document";
        case reply_violation::document:
            return "malformed reply of the server: invalid BSON";
        case reply_violation::nesting:
            return "malformed reply of the server: nested too deep";
        case reply_violation::field:
            return "malformed reply of the server: a field has the wrong type";
        }
        return "malformed reply of the server";
    }
};

std::int32_t int32_at(std::span<const std::byte> bytes, std::size_t position) noexcept
{
    return boost::endian::load_little_s32(
        static_cast<const unsigned char*>(static_cast<const void*>(bytes.subspan(position, 4).data())));
}

void put_int32_at(std::span<std::byte> bytes, std::size_t position, std::int32_t number) noexcept
{
    boost::endian::store_little_s32(
        static_cast<unsigned char*>(static_cast<void*>(bytes.subspan(position, 4).data())), number);
}

/// Reads all values. `bson_validate` does not: it stops at text that is not UTF-8, and accepts the rest.
boost::system::error_code validate_values(bson_iter_t& fields, int depth) noexcept
{
    bson_iter_t inside;
    while (bson_iter_next(&fields)) {
        if (BSON_ITER_HOLDS_CODEWSCOPE(&fields)) {
            // colock stores none, but a document of another program may stand under one of its keys.
            std::uint32_t code_length = 0;
            bson_iter_codewscope(&fields, &code_length, &inside.len, &inside.raw);
        } else if (!bson_iter_recurse(&fields, &inside)) {
            continue;
        }
        if (depth == 0)
            return make_error_code(reply_violation::nesting);
        if (!bson_iter_init_from_data(&inside, inside.raw, inside.len))
            return make_error_code(reply_violation::document);
        if (const auto violation = validate_values(inside, depth - 1))
            return violation;
    }
    return fields.err_off == 0 ? boost::system::error_code() : make_error_code(reply_violation::document);
}

bool is_number(const bson_iter_t& value) noexcept
{
    return BSON_ITER_HOLDS_INT32(&value) || BSON_ITER_HOLDS_INT64(&value) || BSON_ITER_HOLDS_DOUBLE(&value);
}

/// Returns whether the value is a code. The driver takes code 0 for a success.
bool is_code(const bson_iter_t& value) noexcept
{
    const auto size = is_number(value) ? std::abs(bson_iter_as_double(&value)) : 0;
    return size >= 1 && size <= std::numeric_limits<std::int32_t>::max();
}

using field_rule = bool (*)(std::string_view name, const bson_iter_t& value) noexcept;

/// Returns whether all fields of a document, or elements of an array, comply with the rule.
bool complies(const bson_iter_t& value, field_rule rule) noexcept
{
    bson_iter_t each;
    if (!bson_iter_recurse(&value, &each))
        return false;
    while (bson_iter_next(&each)) {
        if (!rule(bson_iter_key(&each), each))
            return false;
    }
    return true;
}

bool is_error_field(std::string_view name, const bson_iter_t& value) noexcept
{
    if (name == "code")
        return is_code(value);
    if (name == "codeName" || name == "errmsg")
        return BSON_ITER_HOLDS_UTF8(&value);
    return name != "index" || is_number(value);
}

bool is_error(std::string_view, const bson_iter_t& value) noexcept
{
    return BSON_ITER_HOLDS_DOCUMENT(&value) && complies(value, &is_error_field);
}

bool is_document(std::string_view, const bson_iter_t& value) noexcept
{
    return BSON_ITER_HOLDS_DOCUMENT(&value);
}

bool is_cursor_field(std::string_view name, const bson_iter_t& value) noexcept
{
    if (name == "id")
        return BSON_ITER_HOLDS_INT32(&value) || BSON_ITER_HOLDS_INT64(&value);
    if (name == "ns")
        return BSON_ITER_HOLDS_UTF8(&value);
    if (name == "firstBatch" || name == "nextBatch")
        return BSON_ITER_HOLDS_ARRAY(&value) && complies(value, &is_document);
    return true;
}

bool is_reply_field(std::string_view name, const bson_iter_t& value) noexcept
{
    if (name == "ok")
        return is_number(value) || BSON_ITER_HOLDS_BOOL(&value);
    if (name == "writeErrors")
        return BSON_ITER_HOLDS_ARRAY(&value) && complies(value, &is_error);
    if (name == "writeConcernError")
        return is_error(name, value);
    if (name == "cursor")
        return BSON_ITER_HOLDS_DOCUMENT(&value) && complies(value, &is_cursor_field);
    return name == "index" || is_error_field(name, value);
}

boost::system::error_code validate_document(std::span<const std::byte> bytes) noexcept
{
    const auto* const data = static_cast<const std::uint8_t*>(static_cast<const void*>(bytes.data()));
    bson_iter_t fields;
    if (!bson_iter_init_from_data(&fields, data, bytes.size()))
        return make_error_code(reply_violation::sections);
    if (const auto violation = validate_values(fields, max_depth))
        return violation;
    static_cast<void>(bson_iter_init_from_data(&fields, data, bytes.size()));
    while (bson_iter_next(&fields)) {
        if (!is_reply_field(bson_iter_key(&fields), fields))
            return make_error_code(reply_violation::field);
    }
    return {};
}

boost::system::error_code validate_msg(std::span<std::byte>& message) noexcept
{
    constexpr std::size_t flags_at = message_header::size;
    constexpr std::size_t kind_at = flags_at + 4;
    constexpr std::size_t document_at = kind_at + 1;
    if (message.size() <= document_at)
        return make_error_code(reply_violation::sections);
    auto flags = static_cast<std::uint32_t>(int32_at(message, flags_at));
    if ((flags & required_flags & ~checksum_present) != 0)
        return make_error_code(reply_violation::flags);
    if ((flags & checksum_present) != 0) {
        if (message.size() <= document_at + checksum_size)
            return make_error_code(reply_violation::sections);
        message = message.first(message.size() - checksum_size);
        put_int32_at(message, 0, static_cast<std::int32_t>(message.size()));
        put_int32_at(message, flags_at, static_cast<std::int32_t>(flags & ~checksum_present));
    }
    if (message[kind_at] != std::byte{0})
        return make_error_code(reply_violation::sections);
    return validate_document(message.subspan(document_at));
}

boost::system::error_code validate_op_reply(std::span<const std::byte> message) noexcept
{
    constexpr std::size_t flags_at = message_header::size;
    // After the id of a cursor and the position in its result.
    constexpr std::size_t count_at = flags_at + 4 + 8 + 4;
    constexpr std::size_t document_at = count_at + 4;
    if (message.size() <= document_at || int32_at(message, count_at) != 1)
        return make_error_code(reply_violation::sections);
    if ((static_cast<std::uint32_t>(int32_at(message, flags_at)) & cursor_not_found) != 0)
        return make_error_code(reply_violation::flags);
    return validate_document(message.subspan(document_at));
}

} // namespace

message_header message_header::read(std::span<const std::byte, size> from) noexcept
{
    return {.length = int32_at(from, 0),
        .id = int32_at(from, 4),
        .response_to = int32_at(from, 8),
        .op_code = int32_at(from, 12)};
}

boost::system::error_code make_error_code(reply_violation violation) noexcept
{
    static constexpr violation_category category;
    return {static_cast<int>(violation), category};
}

boost::system::error_code validate_header(const message_header& reply, const message_header& request) noexcept
{
    const bool is_of_query = request.op_code == op_query;
    if (reply.length < static_cast<std::int32_t>(message_header::size) ||
        reply.length > (is_of_query ? max_hello_length : max_length))
        return make_error_code(reply_violation::length);
    if (reply.op_code == op_compressed)
        return make_error_code(reply_violation::compression);
    if (reply.op_code != (is_of_query ? op_reply : op_msg))
        return make_error_code(reply_violation::op_code);
    if (reply.response_to != request.id)
        return make_error_code(reply_violation::response_to);
    return {};
}

boost::system::error_code validate_body(std::span<std::byte>& message) noexcept
{
    return int32_at(message, 12) == op_msg ? validate_msg(message) : validate_op_reply(message);
}

} // namespace colock::inline v0::mongo::detail
