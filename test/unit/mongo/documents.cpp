// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/query.hpp"
#include "mongo/driver/command_template.hpp"
#include "mongo/driver/server_clock.hpp"
#include "mongo/templates/lock_view.hpp"

#include <colock/spi/claim.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::mongo::detail;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

constexpr std::int64_t now = 1'000'000;
/// A placeholder, as written in a template.
constexpr std::string_view placeholder = R"("?n")";

const document& exclusive_document()
{
    static const auto text = document::from_json(R"({"_id":"k","t":"one","x":{"$numberLong":"1000500"},
        "f":{"$numberLong":"7"},"e":2,"o":{"host":"h","owner":"me","comment":"why","group":"g"},
        "a":{"$numberLong":"999000"},"r":{"$numberLong":"999500"},"h":[],"hx":0,"w":{"$numberLong":"1060000"},"wb":"us"})");
    return text;
}

const document& shared_document()
{
    static const auto text = document::from_json(R"({"_id":"k","t":null,"x":0,"f":{"$numberLong":"9"},"h":[
        {"t":"one","x":{"$numberLong":"1000300"},"f":{"$numberLong":"8"},"e":1,"o":{"owner":"first"},"a":1,"r":1},
        {"t":"two","x":{"$numberLong":"1000900"},"f":{"$numberLong":"9"},"e":1,"o":{"owner":"second"},"a":1,"r":1},
        {"t":"old","x":{"$numberLong":"1000000"},"f":{"$numberLong":"6"},"e":1}],
        "hx":{"$numberLong":"1000900"},"wt":"writer","wx":{"$numberLong":"1000100"}})");
    return text;
}

lock_view view_of(const document& text)
{
    document reply;
    bson_append_document(reply.get(), "value", -1, text.get());
    static std::vector<document> kept;
    kept.push_back(std::move(reply));
    return lock_view::of_answer(kept.back());
}

std::vector<lock_status> statuses(const document& text, holders which, const server_time& time = {now, now})
{
    document reply;
    bson_append_document(reply.get(), "value", -1, text.get());
    bson_iter_t value;
    BOOST_TEST_REQUIRE(bson_iter_init_find(&value, reply.get(), "value"));
    return read_holders(value, which, time);
}

bool is(const document& found, const char* json)
{
    return bson_equal(found.get(), document::from_json(json).get());
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_documents)

BOOST_AUTO_TEST_CASE(placeholders_are_filled_at_any_depth)
{
    const command_template text(R"({"a":"?n","b":[{"c":"?s"},"?n","plain"],"d":{"e":"?d"},"k":"?k"})");
    const auto inside = document::from_json(R"({"x":"?not a placeholder"})");
    const auto filled = text.filled({{"n", std::int64_t{5}}, {"s", "text"}, {"d", &inside}, {"k", bytes{"key"}}});
    BOOST_TEST(is(filled, R"({"a":{"$numberLong":"5"},"b":[{"c":"text"},{"$numberLong":"5"},"plain"],
        "d":{"e":{"x":"?not a placeholder"}},"k":"key"})"),
        filled.to_json());
}

/// The driver's own functions give the expected result for each type.
BOOST_AUTO_TEST_CASE(value_of_a_placeholder_is_encoded_like_the_driver)
{
    const command_template text(R"({"n":"?n","t":"?t","d":"?d","i":"?i","k":"?k"})");
    const auto inside = document::from_json(R"({"a":[1,{"b":null}]})");
    for (const auto& key : {"plain"s, ""s, "\xc3\xbc"s, "\xff\xfe"s, "a\0b"s}) {
        for (const std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
                 std::numeric_limits<std::int64_t>::min()})
        {
            document expected;
            auto& to = *expected.get();
            bson_append_int64(&to, "n", -1, number);
            bson_append_utf8(&to, "t", -1, "text", -1);
            bson_append_date_time(&to, "d", -1, number);
            bson_append_document(&to, "i", -1, inside.get());
            append_bytes(to, "k", key);
            const auto filled = text.filled({{"n", number}, {"t", std::string_view("text")}, {"d", date{number}},
                {"i", &inside}, {"k", bytes{key}}});
            BOOST_TEST(bson_equal(filled.get(), expected.get()), filled.to_json());
        }
    }
}

BOOST_AUTO_TEST_CASE(text_without_an_address_is_an_empty_text)
{
    const command_template text(R"({"t":"?t","k":"?k"})");
    const auto filled = text.filled({{"t", std::string_view()}, {"k", bytes{std::string_view()}}});
    BOOST_TEST(filled.to_json() == document::from_json(R"({"t":"","k":""})").to_json());
}

BOOST_AUTO_TEST_CASE(template_text_is_copied_unchanged)
{
    for (const char* const json :
        {"{}", R"({"a":{}})", R"({"a":[],"b":{"c":[{},[],{"d":null}]},"e":true})", R"({"a":{"b":"?n"},"c":[]})",
            R"({"a":[{},"?n",{"b":{}}],"c":{"d":"?n","e":[[1.5]]},"f":{}})", R"({"a":[["?n"],[[2]],"?n"]})"})
    {
        auto with_number = std::string(json);
        for (auto at = with_number.find(placeholder); at != std::string::npos; at = with_number.find(placeholder))
            with_number.replace(at, placeholder.size(), R"({"$numberLong":"7"})");
        const auto filled = command_template(json).filled({{"n", std::int64_t{7}}});
        BOOST_TEST(is(filled, with_number.c_str()), filled.to_json());
        // The result is the same after existing fields.
        auto appended = document::from_json(R"({"first":1})");
        auto expected = document::from_json(R"({"first":1})");
        command_template(json).append_to(*appended.get(), {{"n", std::int64_t{7}}});
        bson_concat(expected.get(), filled.get());
        BOOST_TEST(bson_equal(appended.get(), expected.get()), appended.to_json());
        BOOST_TEST(bson_validate(filled.get(), BSON_VALIDATE_NONE, nullptr));
    }
}

BOOST_AUTO_TEST_CASE(array_fills_a_placeholder)
{
    const auto inside = document::from_json(R"({"0":"a","1":"b"})");
    const auto filled = command_template(R"({"a":["?x","?a"],"b":{"$in":"?a"}})")
                            .filled({{"x", std::int64_t{1}}, {"a", array{&inside}}});
    BOOST_TEST(is(filled, R"({"a":[{"$numberLong":"1"},["a","b"]],"b":{"$in":["a","b"]}})"), filled.to_json());
}

BOOST_AUTO_TEST_CASE(document_is_foreign_unless_it_has_the_form_of_a_lock)
{
    const auto check = [](const char* json, bool expected) {
        document reply;
        bson_append_document(reply.get(), "value", -1, document::from_json(json).get());
        bson_iter_t value;
        BOOST_TEST_REQUIRE(bson_iter_init_find(&value, reply.get(), "value"));
        BOOST_TEST(is_foreign(value) == expected, json);
    };
    check(exclusive_document().to_json().c_str(), false);
    check(R"({"_id":"k"})", false);
    check(R"({"_id":"k","x":0,"hx":0})", false);
    check(R"({"_id":"k","x":{"$numberLong":"5"},"hx":{"$numberLong":"0"},"t":"a"})", false);
    for (const auto* const json : {R"({"_id":"k","n":1})", R"({"_id":"k","x":5})", R"({"_id":"k","hx":5})",
             R"({"_id":"k","x":"5","hx":0})", R"({"_id":"k","x":null,"hx":0})", R"({"_id":"k","x":0,"hx":[]})"})
        check(json, true);
}

BOOST_AUTO_TEST_CASE(view_of_a_document_with_foreign_types_is_foreign)
{
    BOOST_TEST(!view_of(exclusive_document()).is_foreign());
    BOOST_TEST(!view_of(shared_document()).is_foreign());
    for (const auto* const json : {R"("x":"text","hx":0)", R"("x":0,"hx":0,"t":5)", R"("x":0,"hx":0,"f":{})",
             R"("x":0,"hx":0,"h":"text")", R"("x":0,"hx":0,"wx":true)"})
        BOOST_TEST(view_of(document::from_json("{" + std::string(json) + "}")).is_foreign(), json);
}

BOOST_AUTO_TEST_CASE(view_of_a_document_without_the_times_of_a_lock_is_foreign)
{
    BOOST_TEST(!lock_view().is_foreign());
    BOOST_TEST(!view_of(document::from_json(R"({"_id":"k","x":0,"hx":0})")).is_foreign());
    for (const auto* const json : {R"({"_id":"k"})", R"({"_id":"k","x":0})", R"({"_id":"k","hx":0})",
             R"({"_id":"k","x":-1,"hx":0})", R"({"_id":"k","x":0,"hx":null})"})
        BOOST_TEST(view_of(document::from_json(json)).is_foreign(), json);
}

BOOST_AUTO_TEST_CASE(text_other_than_utf8_is_stored_unchanged)
{
    for (const std::string text : {"plain", "\xc3\xbc", "\xff\xfe", "\xc3", ""}) {
        document made;
        append_bytes(*made.get(), "k", text);
        bson_iter_t field;
        BOOST_TEST_REQUIRE(bson_iter_init_find(&field, made.get(), "k"));
        BOOST_TEST(read_bytes(field) == text);
        BOOST_TEST((bson_iter_type(&field) == BSON_TYPE_UTF8) == (text != "\xff\xfe" && text != "\xc3"));
    }
}

BOOST_AUTO_TEST_CASE(a_view_finds_the_holder_by_its_token)
{
    const auto exclusive = view_of(exclusive_document());
    BOOST_TEST_REQUIRE(exclusive.find("one") != nullptr);
    BOOST_TEST(exclusive.find("one")->fence == 7);
    BOOST_TEST(exclusive.find("one")->request == 2);
    BOOST_TEST(exclusive.find("other") == nullptr);
    BOOST_TEST(exclusive.owner() == "me");
    const auto readers = view_of(shared_document());
    BOOST_TEST_REQUIRE(readers.find("two") != nullptr);
    BOOST_TEST(readers.find("two")->fence == 9);
    BOOST_TEST(readers.writer() == "writer");
    BOOST_TEST(!view_of(document()).find("one"));
    BOOST_TEST(!lock_view::of_answer(document::from_json(R"({"value":null})")).exists());
}

BOOST_AUTO_TEST_CASE(others_wait_until_their_mark_expires)
{
    const auto view = view_of(exclusive_document());
    BOOST_TEST(!view.others_wait("us", now));
    BOOST_TEST(view.others_wait("them", now));
    BOOST_TEST(!view.others_wait("them", now + 60'000));
}

BOOST_AUTO_TEST_CASE(view_returns_the_earliest_time_of_a_grant)
{
    const claim writer({.key = "k"});
    const claim reader({.key = "k", .mode = lock_mode::shared});
    BOOST_TEST(view_of(exclusive_document()).free_at(writer, now) == now + 500);
    BOOST_TEST(view_of(exclusive_document()).free_at(reader, now) == now + 500);
    // A writer waits for the last reader. A reader waits for the waiting writer, and then for the first expiry.
    BOOST_TEST(view_of(shared_document()).free_at(writer, now) == now + 900);
    BOOST_TEST(view_of(shared_document()).free_at(reader, now) == now + 100);
    BOOST_TEST(view_of(shared_document()).free_at(reader, now + 200) == now + 300);
    BOOST_TEST(view_of(shared_document()).free_at(writer, now + 900) == 0);
    BOOST_TEST(view_of(exclusive_document()).free_at(writer, now + 500) == 0);
    // A holder without a ttl counts as well.
    const auto forever = document::from_json(
        R"({"_id":"k","x":0,"h":[{"t":"one","x":{"$numberLong":"9223372036854775807"},"f":8,"e":1}]})");
    BOOST_TEST(view_of(forever).free_at(reader, now) == std::numeric_limits<std::int64_t>::max());
}

BOOST_AUTO_TEST_CASE(a_status_has_all_that_is_known_and_no_token)
{
    const auto all = statuses(exclusive_document(), holders::live);
    BOOST_TEST_REQUIRE(all.size() == 1U);
    BOOST_TEST(all[0].key == "k");
    BOOST_TEST(all[0].owner == "me");
    BOOST_TEST(all[0].host == "h");
    BOOST_TEST(all[0].comment == "why");
    BOOST_TEST(all[0].group == "g");
    BOOST_TEST(all[0].fence == 7U);
    BOOST_TEST((all[0].mode == lock_mode::exclusive));
    BOOST_TEST((all[0].remaining == 500ms));
    BOOST_TEST((all[0].created == std::chrono::system_clock::time_point(999s)));
    BOOST_TEST(statuses(exclusive_document(), holders::expired).empty());
}

BOOST_AUTO_TEST_CASE(expired_holders_are_distinguished_from_live_holders)
{
    const auto live = statuses(shared_document(), holders::live);
    BOOST_TEST_REQUIRE(live.size() == 2U);
    BOOST_TEST(live[0].owner == "first");
    BOOST_TEST((live[1].mode == lock_mode::shared));
    const auto expired = statuses(shared_document(), holders::expired);
    BOOST_TEST_REQUIRE(expired.size() == 1U);
    BOOST_TEST(expired[0].fence == 6U);
    BOOST_TEST((expired[0].remaining == 0ms));
}

BOOST_AUTO_TEST_CASE(holder_that_expired_at_an_impossible_time_has_no_remaining_time)
{
    for (const auto* const time : {R"({"$numberLong":"-9223372036854775808"})", "-1e300"}) {
        const auto text =
            document::from_json(R"({"_id":"k","t":"one","x":)" + std::string(time) + R"(,"f":1,"e":1,"hx":0})");
        const auto expired = statuses(text, holders::expired);
        BOOST_TEST_REQUIRE(expired.size() == 1U);
        BOOST_TEST((expired[0].remaining == 0ms));
    }
}

BOOST_AUTO_TEST_CASE(pages_list_text_keys_before_binary_keys)
{
    auto first = page_start::from("");
    BOOST_TEST_REQUIRE(first.has_value());
    BOOST_TEST(first->is_in_text_keys());
    first->move_after("middle");
    BOOST_TEST(first->cursor() == "tmiddle");
    auto again = page_start::from(first->cursor());
    BOOST_TEST_REQUIRE(again.has_value());
    BOOST_TEST(again->cursor() == "tmiddle");
    BOOST_TEST(again->skip_to_binary_keys());
    BOOST_TEST(again->cursor() == "b");
    BOOST_TEST(!again->skip_to_binary_keys());
    again->move_after("\xff\xfe");
    BOOST_TEST(page_start::from(again->cursor())->cursor() == again->cursor());
}

BOOST_AUTO_TEST_CASE(invalid_cursor_is_rejected)
{
    for (const std::string cursor : {"middle", "x", "t\xff", " ", "17"})
        BOOST_TEST(!page_start::from(cursor), cursor);
}

BOOST_AUTO_TEST_CASE(a_query_has_every_condition_that_a_server_can_decide)
{
    filter wanted;
    wanted.key_prefix = "cart:";
    wanted.group = "g";
    wanted.mode = lock_mode::exclusive;
    wanted.remaining_below = 5s;
    const auto query = list_query(wanted, page_start(), {now, now});
    BOOST_TEST(is(query, R"({"$and":[{"_id":{"$gt":""}},{"x":{"$gt":{"$numberLong":"1000000"}}},
        {"hx":{"$gte":0}},{"_id":{"$gte":"cart:"}},{"_id":{"$lt":"cart;"}},
        {"$or":[{"o.group":"g"},{"h.o.group":"g"}]},
        {"$or":[{"x":{"$gt":{"$numberLong":"1000000"},"$lt":{"$numberLong":"1005000"}}},
            {"h.x":{"$lt":{"$numberLong":"1005000"}}}]}]})"),
        query.to_json());
}

BOOST_AUTO_TEST_CASE(prefix_that_ends_within_a_character_is_compared_by_the_client)
{
    for (const std::string prefix : {"\xc3", "a\xff"}) {
        filter wanted;
        wanted.key_prefix = prefix;
        const auto query = list_query(wanted, page_start(), {now, now}).to_json();
        BOOST_TEST(query.find(R"("_id" : { "$gte")") == std::string::npos, query);
    }
    filter wanted;
    wanted.key_prefix = "\xc3\xbc";
    const auto text = list_query(wanted, page_start(), {now, now}).to_json();
    BOOST_TEST(text.find("$gte") != std::string::npos);
    BOOST_TEST(text.find("$lt") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(server_clock_advances_with_the_local_clock)
{
    server_clock clock;
    const lease_clock::time_point asked{std::chrono::hours(5)};
    const auto received = asked + 200ms;
    clock.update(now, asked, received);
    BOOST_TEST(clock.latest(asked) == now);
    BOOST_TEST(clock.latest(asked + 1500ms) == now + 1500);
    BOOST_TEST(clock.earliest(received) == now);
    BOOST_TEST(clock.earliest(received + 1500ms) == now + 1500);
    BOOST_TEST(clock.earliest(asked) == now - 200);
    // Rounded: never earlier than the server's clock, or never later.
    BOOST_TEST(clock.latest(asked + 1ns) == now + 1);
    BOOST_TEST(clock.earliest(received + 1999us) == now + 1);
}

BOOST_AUTO_TEST_CASE(server_clock_differs_from_another_only_if_this_is_certain)
{
    const lease_clock::time_point start{std::chrono::hours(5)};
    server_clock one;
    server_clock other;
    one.update(now, start, start + 200ms);
    other.update(now + 1000, start + 1000ms, start + 1100ms);
    BOOST_TEST(one.lead_over(other) == 0);
    BOOST_TEST(other.lead_over(one) == 0);
    other.update(now + 2000, start + 1000ms, start + 1100ms);
    BOOST_TEST(other.lead_over(one) == 900);
    BOOST_TEST(one.lead_over(other) == -900);
    other.update(now, start + 1000ms, start + 1100ms);
    BOOST_TEST(other.lead_over(one) == -800);
    BOOST_TEST(one.lead_over(other) == 800);
}

BOOST_AUTO_TEST_CASE(time_is_read_from_the_reply_about_the_clock_only)
{
    const auto time_in = [](const std::string& reply) { return read_time(document::from_json(reply)).value_or(-1); };
    BOOST_TEST(
        time_in(R"({"ok":1,"value":{"_id":{"c":"clock"},"n":{"$numberLong":"1700000000123"}}})") == 1'700'000'000'123);
    BOOST_TEST(time_in(R"({"ok":1,"value":{"_id":{"c":"clock"},"n":"text"}})") == -1);
    BOOST_TEST(time_in(R"({"ok":1,"value":null})") == -1);
    BOOST_TEST(time_in(R"({"ok":1,"isWritablePrimary":true,"localTime":{"$date":{"$numberLong":"7"}}})") == -1);
}

BOOST_AUTO_TEST_CASE(holder_has_expired_only_if_this_is_certain)
{
    // The lock expires at `now + 500`.
    const auto& text = exclusive_document();
    for (const server_time time : {server_time{now, now + 499}, {now + 499, now + 500}, {now + 499, now + 900}}) {
        const auto live = statuses(text, holders::live, time);
        BOOST_TEST_REQUIRE(live.size() == 1U);
        // The remaining time is never too long.
        BOOST_TEST(
            (live.front().remaining == std::chrono::milliseconds(std::max<std::int64_t>(now + 500 - time.latest, 0))));
        BOOST_TEST(statuses(text, holders::expired, time).empty());
    }
    BOOST_TEST(statuses(text, holders::live, {now + 500, now + 900}).empty());
    BOOST_TEST(statuses(text, holders::expired, {now + 500, now + 900}).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
