// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/cluster/redirection.hpp"
#include "redis/cluster/slot_map.hpp"
#include "redis/settings.hpp"
#include "redis/slot.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {
namespace {

reply text(std::string value)
{
    return {.type = reply::kind::text, .text = std::move(value)};
}
reply number(std::int64_t value)
{
    return {.type = reply::kind::number, .number = value};
}
reply array(std::vector<reply> items)
{
    return {.type = reply::kind::array, .items = std::move(items)};
}

reply node(std::string host, std::int64_t port)
{
    return array({text(std::move(host)), number(port), text("id"), array({})});
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_cluster_parts)

// The slots were asked for by CLUSTER KEYSLOT of Redis 7.0.
BOOST_AUTO_TEST_CASE(slots_are_those_of_the_server)
{
    const std::pair<std::string_view, slot_number> cases[] = {{"", 0}, {"foo", 12182}, {"123456789", 12739},
        {"{user1000}.following", 3443}, {"user1000", 3443}, {"foo{}{bar}", 8363}, {"foo{{bar}}zap", 4015},
        {"foo{bar}{zap}", 5061}, {"}x", 410}, {"{x", 11068}, {"colock:k", 2791}};
    for (const auto& [key, slot] : cases)
        BOOST_TEST(slot_of(key) == slot, key);
}

BOOST_AUTO_TEST_CASE(each_slot_has_a_tag)
{
    for (slot_number slot = 0; slot < slot_count; ++slot)
        BOOST_TEST_REQUIRE(slot_of("colock#f{" + tag_of(slot) + "}") == slot);
}

BOOST_AUTO_TEST_CASE(counter_of_a_slot_is_in_that_slot)
{
    for (const auto* const prefix : {"colock:", "a:b:", "{app}:"}) {
        const settings config(options{.url = "redis+cluster://h", .prefix = prefix});
        const auto slot = slot_of(config.prefix + "k");
        BOOST_TEST(slot_of(config.fence_key(slot)) == slot, prefix);
    }
    const settings one_slot(options{.url = "redis+cluster://h", .prefix = "{app}:"});
    BOOST_TEST(one_slot.fence_key(slot_number{7}) == "{app}#fence");
    const settings one_server(options{.url = "redis://h"});
    BOOST_TEST(one_server.fence_key(slot_number{7}) == "{colock}#fence");
}

BOOST_AUTO_TEST_CASE(prefix_with_a_brace_but_no_tag_is_refused)
{
    for (const auto* const prefix : {"a{b:", "a{}b:", "}{:"}) {
        const options given{.url = "redis+cluster://h", .prefix = prefix};
        BOOST_CHECK_EXCEPTION(settings{given}, validation_error, [](const validation_error& refused) {
            return std::string_view(refused.what()).find("brace") != std::string_view::npos;
        });
    }
}

BOOST_AUTO_TEST_CASE(redirections_are_read)
{
    BOOST_TEST((parse_redirection("MOVED 3999 127.0.0.1:6381") == redirection{false, 3999, {"127.0.0.1", "6381"}}));
    BOOST_TEST((parse_redirection("ASK 0 db.example:1") == redirection{true, 0, {"db.example", "1"}}));
    BOOST_TEST((parse_redirection("MOVED 16383 ::1:7000") == redirection{false, 16383, {"::1", "7000"}}));
    // The server does not know its own host.
    BOOST_TEST((parse_redirection("MOVED 7785 :36021") == redirection{false, 7785, {"", "36021"}}));
    BOOST_TEST((parse_redirection("MOVED 7785 ?:36021") == redirection{false, 7785, {"", "36021"}}));
}

BOOST_AUTO_TEST_CASE(other_errors_are_no_redirections)
{
    for (const auto* const error : {"", "ERR", "MOVED", "MOVED 1", "MOVED 1 h", "MOVED 16384 h:1", "MOVED -1 h:1",
             "MOVED x h:1", "ASK 1 h:0", "ASK 1 h:65536", "ASK 1 h:x", "ASKING 1 h:1", "TRYAGAIN 1 h:1"})
        BOOST_TEST(!parse_redirection(error), error);
}

BOOST_AUTO_TEST_CASE(map_is_read)
{
    const auto map = parse_slots(
        array({array({number(0), number(5460), node("a", 1), node("replica", 2)}),
            array({number(5461), number(16383), node("", 3)}), array({number(7), number(7), node("?", 4)})}),
        {"replier", "9"});
    const std::vector<slot_range> expected{
        {0, 5460, {"a", "1"}}, {5461, 16383, {"replier", "3"}}, {7, 7, {"replier", "4"}}};
    BOOST_TEST_REQUIRE(map.has_value());
    BOOST_TEST((*map == expected));
    const auto without_host =
        array({array({number(0), number(1), array({reply{.type = reply::kind::null}, number(3)})})});
    BOOST_TEST((parse_slots(without_host, {"replier", "9"})->front().master == endpoint{"replier", "3"}));
}

BOOST_AUTO_TEST_CASE(malformed_map_is_refused)
{
    const reply cases[] = {text("x"), array({text("x")}), array({array({number(0)})}),
        array({array({number(5), number(4), node("a", 1)})}), array({array({number(0), number(16384), node("a", 1)})}),
        array({array({number(-1), number(4), node("a", 1)})}), array({array({number(0), number(4), node("a", 0)})}),
        array({array({number(0), number(4), node("a", 65536)})})};
    for (const auto& each : cases)
        BOOST_TEST(!parse_slots(each, {"replier", "9"}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
