// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/reply_validation.hpp"

#include "mongo/driver/document.hpp"

#include <boost/endian/conversion.hpp>
#include <boost/system/errc.hpp>
#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace colock::mongo::detail;
using violation = reply_violation;

namespace {

constexpr std::int32_t op_query = 2004;
constexpr std::int32_t op_msg = 2013;
constexpr message_header request{.id = 7, .op_code = op_msg};

std::string number(std::int32_t value)
{
    std::string bytes(sizeof value, '\0');
    boost::endian::store_little_s32(reinterpret_cast<unsigned char*>(bytes.data()), value);
    return bytes;
}

std::string bytes_of(const document& made)
{
    return {reinterpret_cast<const char*>(bson_get_data(made.get())), made.get()->len};
}
std::string bytes_of(std::string_view json)
{
    return bytes_of(document::from_json(json));
}

std::string message(std::int32_t op_code, const std::string& body)
{
    const auto length = static_cast<std::int32_t>(message_header::size + body.size());
    return number(length) + number(1) + number(request.id) + number(op_code) + body;
}
std::string msg(const std::string& sections, std::int32_t flags = 0)
{
    return message(op_msg, number(flags) + sections);
}
std::string msg_of(const std::string& one_document)
{
    return msg('\0' + one_document);
}
std::string op_reply(const std::string& documents, std::int32_t flags = 0, std::int32_t count = 1)
{
    return message(1, number(flags) + std::string(12, '\0') + number(count) + documents);
}

/// Validates a message, which may become shorter.
boost::system::error_code validated(std::string& text)
{
    // The copy has exactly this size, so that a sanitizer reports a read outside of the message.
    const auto given = std::as_bytes(std::span(text));
    std::vector<std::byte> copy(given.begin(), given.end());
    std::span<std::byte> bytes(copy);
    const auto result = validate_body(bytes);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return result;
}

void check_is_valid(std::string text)
{
    const auto result = validated(text);
    BOOST_TEST(!result, result.message());
}
void check_violates(std::string text, violation what)
{
    const auto result = validated(text);
    BOOST_TEST((result == make_error_code(what)), result.message());
    BOOST_TEST((result == boost::system::errc::protocol_error));
}

std::string document_with(const std::string& elements)
{
    return number(static_cast<std::int32_t>(elements.size() + 5)) + elements + '\0';
}
std::string element(char type, std::string_view name, const std::string& value)
{
    return type + std::string(name) + '\0' + value;
}
std::string text(std::string_view name, const std::string& value)
{
    return element('\x02', name, number(static_cast<std::int32_t>(value.size() + 1)) + value + '\0');
}
std::string code_with_scope(std::string_view name, const std::string& scope)
{
    const auto value = number(2) + "c" + '\0' + scope;
    return element('\x0f', name, number(static_cast<std::int32_t>(value.size() + 4)) + value);
}

/// A document that contains `levels` documents, one inside of the other.
std::string nested(int levels, char type = '\x03')
{
    auto made = document_with("");
    for (int i = 0; i < levels; ++i)
        made = document_with(element(type, "0", made));
    return made;
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_reply_validation)

BOOST_AUTO_TEST_CASE(header_is_read_in_little_endian)
{
    const auto text = message(op_msg, "");
    const auto header = message_header::read(std::as_bytes(std::span(text)).first<message_header::size>());
    BOOST_TEST(header.length == 16);
    BOOST_TEST(header.id == 1);
    BOOST_TEST(header.response_to == 7);
    BOOST_TEST(header.op_code == op_msg);
}

BOOST_AUTO_TEST_CASE(violation_says_who_breaks_the_protocol)
{
    for (const auto what : {violation::length, violation::op_code})
        BOOST_TEST(make_error_code(what).message().starts_with("the peer is not a MongoDB server: "));
    for (const auto what : {violation::compression, violation::response_to, violation::surplus, violation::flags,
             violation::sections, violation::document, violation::nesting, violation::field})
        BOOST_TEST(make_error_code(what).message().starts_with("malformed reply of the server: "));
}

BOOST_AUTO_TEST_CASE(header_of_a_reply_matches_its_request)
{
    const message_header reply{.length = 100, .id = 3, .response_to = 7, .op_code = op_msg};
    BOOST_TEST(!validate_header(reply, request));
    const auto check_violates_by = [&](violation what, auto change) {
        auto changed = reply;
        change(changed);
        BOOST_TEST((validate_header(changed, request) == make_error_code(what)));
    };
    for (const std::int32_t length : {15, 0, -1, 48'000'001})
        check_violates_by(violation::length, [&](message_header& at) { at.length = length; });
    for (const std::int32_t id : {0, 6, 8, -7})
        check_violates_by(violation::response_to, [&](message_header& at) { at.response_to = id; });
    for (const std::int32_t op_code : {0, 1, op_query, 2001, -1})
        check_violates_by(violation::op_code, [&](message_header& at) { at.op_code = op_code; });
    check_violates_by(violation::compression, [](message_header& at) { at.op_code = 2012; });
}

BOOST_AUTO_TEST_CASE(reply_to_a_query_has_the_old_form)
{
    const message_header query{.id = 7, .op_code = op_query};
    const auto check_violates_by = [&](const message_header& reply, violation what) {
        BOOST_TEST((validate_header(reply, query) == make_error_code(what)));
    };
    BOOST_TEST(!validate_header({.length = 1'000'000, .response_to = 7, .op_code = 1}, query));
    check_violates_by({.length = 1'000'001, .response_to = 7, .op_code = 1}, violation::length);
    check_violates_by({.length = 100, .response_to = 7, .op_code = op_msg}, violation::op_code);
}

BOOST_AUTO_TEST_CASE(message_contains_exactly_one_document)
{
    const auto fine = bytes_of(R"({"ok":1})");
    check_is_valid(msg_of(fine));
    check_violates(msg(""), violation::sections);
    check_violates(msg(std::string(1, '\0')), violation::sections);
    check_violates(msg_of(fine + fine), violation::sections);
    check_violates(msg_of(fine + '\0' + fine), violation::sections);
    check_violates(msg('\1' + number(20) + "documents" + '\0' + fine), violation::sections);
    check_violates(msg('\2' + fine), violation::sections);
    check_violates(message(op_msg, ""), violation::sections);
    check_is_valid(op_reply(fine));
    check_violates(op_reply("", 0, 0), violation::sections);
    check_violates(op_reply(fine + fine, 0, 2), violation::sections);
    check_violates(op_reply(fine + fine), violation::sections);
    check_violates(message(1, number(0)), violation::sections);
}

BOOST_AUTO_TEST_CASE(unknown_flags_are_refused_unless_they_are_optional)
{
    const auto sections = '\0' + bytes_of(R"({"ok":1})");
    // The flag 2 announces further replies.
    for (const int flags : {2, 4, 0x8000})
        check_violates(msg(sections, flags), violation::flags);
    check_is_valid(msg(sections, 0x10000));
    const auto fine = bytes_of(R"({"ok":1})");
    for (const int flags : {2, 4, 8, 10, 16})
        check_is_valid(op_reply(fine, flags));
    // The flag 1 belongs to the reply to another kind of request.
    for (const int flags : {1, 3, -1})
        check_violates(op_reply(fine, flags), violation::flags);
}

BOOST_AUTO_TEST_CASE(checksum_is_removed_with_its_flag)
{
    const auto sections = '\0' + bytes_of(R"({"ok":1})");
    auto text = msg(sections + "\1\2\3\4", 1);
    BOOST_TEST(!validated(text));
    BOOST_TEST(text == msg(sections));
    check_violates(msg("\1\2\3\4", 1), violation::sections);
    check_violates(msg(sections, 1), violation::sections);
}

BOOST_AUTO_TEST_CASE(document_is_valid_bson)
{
    const auto fine = bytes_of(R"({"ok":1,"text":"abc"})");
    auto with_wrong_text = fine;
    with_wrong_text[fine.find("abc") - 4] = '\5';
    check_violates(msg_of(with_wrong_text), violation::document);
    auto with_unknown_type = fine;
    with_unknown_type[fine.find("text") - 1] = '\x44';
    check_violates(msg_of(with_unknown_type), violation::document);
}

BOOST_AUTO_TEST_CASE(every_value_of_a_document_is_validated)
{
    const auto ok = element('\x08', "ok", "\1");
    const auto corrupt = element('\x04', "hosts", document_with(element('\x02', "0", number(99))));
    check_violates(msg_of(document_with(ok + corrupt)), violation::document);
    // Text that is not UTF-8 hides nothing.
    check_is_valid(msg_of(document_with(text("text", "\xff") + ok)));
    for (const auto& unusual : {text("text", "\xff"), text("\xff", "text"), element('\x03', "nested", nested(3))}) {
        check_violates(msg_of(document_with(unusual + corrupt + ok)), violation::document);
        check_violates(op_reply(document_with(unusual + corrupt + ok)), violation::document);
        check_violates(msg_of(document_with(unusual + element('\x10', "code", number(0)))), violation::field);
    }
    check_is_valid(msg_of(document_with(code_with_scope("c", document_with("")) + ok)));
    check_violates(msg_of(document_with(code_with_scope("c", document_with(corrupt)) + ok)), violation::document);
    for (const std::int32_t length : {-1, 0, 4, 6, 1000}) {
        const auto scope = number(length) + '\0';
        check_violates(msg_of(document_with(code_with_scope("c", scope) + ok)), violation::document);
    }
    check_violates(msg_of(document_with(code_with_scope("c", document_with("")) + corrupt)), violation::document);
    // A document that contains only its length, and one without its last byte.
    check_violates(msg_of(document_with(ok + element('\x03', "value", number(4)))), violation::document);
    check_violates(msg_of(document_with(ok + element('\x03', "value", number(5) + 'x'))), violation::document);
}

BOOST_AUTO_TEST_CASE(depth_of_a_document_is_limited)
{
    check_is_valid(msg_of(nested(200)));
    check_violates(msg_of(nested(201)), violation::nesting);
    check_violates(msg_of(nested(20'000)), violation::nesting);
    // Arrays.
    check_violates(msg_of(nested(201, '\x04')), violation::nesting);
}

BOOST_AUTO_TEST_CASE(fields_of_the_result_have_the_types_that_servers_send)
{
    for (const auto* const fine :
        {R"({"ok":1})", R"({"ok":1.0})", R"({"ok":true})", R"({})", R"({"ok":{"$numberLong":"1"}})",
            R"({"ok":0,"code":59,"codeName":"CommandNotFound","errmsg":"no such command"})",
            R"({"ok":0,"errmsg":"no code"})", R"({"ok":0,"code":8.0,"errmsg":"a"})", R"({"ok":0,"code":-1})",
            R"({"ok":1,"n":1,"writeErrors":[{"index":0,"code":66,"errmsg":"a"},{"index":2,"errmsg":"no code"}]})",
            R"({"ok":1,"writeErrors":[]})", R"({"ok":1,"writeConcernError":{"code":64,"errmsg":"late"}})",
            R"({"ok":1,"cursor":{"id":{"$numberLong":"5"},"ns":"a.b","firstBatch":[{"_id":1}]}})",
            R"({"ok":1,"cursor":{"id":0,"ns":"a.b","nextBatch":[]}})",
            R"({"ok":1,"value":{"code":"any","ok":"any","cursor":[1]}})"})
        BOOST_TEST_CONTEXT(fine)
        {
            check_is_valid(msg_of(bytes_of(fine)));
        }
    for (const auto* const wrong : {R"({"ok":null})", R"({"ok":"1"})", R"({"ok":0,"code":0})", R"({"ok":0,"code":0.5})",
             R"({"ok":0,"code":"8"})", R"({"ok":0,"code":{"$numberLong":"4294967296"}})", R"({"ok":0,"code":1e300})",
             R"({"ok":0,"code":null})", R"({"ok":0,"codeName":5})", R"({"ok":0,"errmsg":{}})",
             R"({"ok":1,"writeErrors":{}})", R"({"ok":1,"writeErrors":[1]})", R"({"ok":1,"writeErrors":[{"code":0}]})",
             R"({"ok":1,"writeErrors":[{"index":"0"}]})", R"({"ok":1,"writeErrors":[{"errmsg":1}]})",
             R"({"ok":1,"writeConcernError":"late"})", R"({"ok":1,"writeConcernError":{"code":"64"}})",
             R"({"ok":1,"cursor":5})", R"({"ok":1,"cursor":{"id":"5"}})", R"({"ok":1,"cursor":{"ns":5}})",
             R"({"ok":1,"cursor":{"firstBatch":{}}})", R"({"ok":1,"cursor":{"nextBatch":[5]}})"})
        BOOST_TEST_CONTEXT(wrong)
        {
            check_violates(msg_of(bytes_of(wrong)), violation::field);
        }
}

BOOST_AUTO_TEST_CASE(random_changes_of_a_reply_are_refused_or_leave_it_readable)
{
    const std::vector<std::string> documents{
        bytes_of(
            R"({"helloOk":true,"isWritablePrimary":true,"setName":"s","hosts":["a:1","b:2"],"me":"a:1","maxWireVersion":21,)"
            R"("topologyVersion":{"processId":{"$oid":"0123456789abcdef01234567"},"counter":{"$numberLong":"6"}},)"
            R"("localTime":{"$date":{"$numberLong":"7"}},"ok":1.0})"),
        bytes_of(
            R"({"lastErrorObject":{"n":1,"updatedExisting":true},"value":{"_id":"key","t":null,"x":0,"h":[{"t":"a",)"
            R"("x":1}],"b":{"$binary":{"base64":"AAAA","subType":"02"}},"r":{"$regularExpression":{"pattern":"a",)"
            R"("options":"i"}}},"ok":1.0})"),
        bytes_of(
            R"({"ok":0,"code":59,"codeName":"a","errmsg":"b","writeErrors":[{"index":0,"code":66,"errmsg":"c"}]})"),
        bytes_of(
            R"({"cursor":{"id":{"$numberLong":"5"},"ns":"a.b","firstBatch":[{"_id":1},{"_id":{"a":[1]}}]},"ok":1})"),
    };
    constexpr std::int32_t max = std::numeric_limits<std::int32_t>::max();
    const std::vector<std::int32_t> lengths{0, 1, 4, 5, -1, max, max - 4, std::numeric_limits<std::int32_t>::min()};
    // Each run makes the same changes.
    std::mt19937 random; // NOLINT(cert-msc32-c,cert-msc51-cpp)
    const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
    int valid_count = 0;
    constexpr int count = 20'000;
    for (int i = 0; i < count; ++i) {
        const auto& chosen = documents[below(documents.size())];
        const bool is_query = below(4) == 0;
        auto body = is_query ? op_reply(chosen) : msg_of(chosen);
        body.erase(0, message_header::size);
        for (auto left = 1 + below(3); left > 0 && body.size() > 4; --left) {
            const auto at = below(body.size() - 4);
            switch (below(5)) {
            case 0:
                body.replace(at, 4, number(lengths[below(lengths.size())]));
                break;
            case 1:
                body.erase(at, 1 + below(4));
                break;
            case 2:
                body.insert(at, body, below(body.size()), below(20));
                break;
            default:
                body[at] = static_cast<char>(random());
                break;
            }
        }
        auto changed = message(is_query ? 1 : op_msg, body);
        if (validated(changed))
            continue;
        ++valid_count;
        const auto start = message_header::size + (is_query ? 20 : 5);
        bson_t whole;
        BOOST_TEST_REQUIRE(bson_init_static(
            &whole, reinterpret_cast<const std::uint8_t*>(changed.data()) + start, changed.size() - start));
        bson_free(bson_as_canonical_extended_json(&whole, nullptr));
    }
    // Most changes are in values, or break a rule.
    BOOST_TEST(valid_count > count / 100);
    BOOST_TEST(valid_count < count / 2);
}

BOOST_AUTO_TEST_SUITE_END()
