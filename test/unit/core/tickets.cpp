// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/ticket.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::parse_ticket;
using colock::detail::ticket_content;
using colock::detail::to_ticket;

namespace {

std::vector<ticket_content> examples()
{
    const std::string all_bytes = [] {
        std::string bytes;
        for (int each = 0; each < 256; ++each)
            bytes += static_cast<char>(each);
        return bytes;
    }();
    return {
        {},
        {.backend = "memory", .key = "k", .ttl = 30s, .backend_ticket = "1.abc"},
        {.backend = "redis",
            .key = "k",
            .group = "g",
            .mode = lock_mode::shared,
            .max_holders = 3,
            .backend_ticket = "p"},
        {.backend = "redis", .key = "kg", .mode = lock_mode::shared, .max_holders = 3, .backend_ticket = "p"},
        {.backend = "redisk", .key = "g", .mode = lock_mode::shared, .max_holders = 3, .backend_ticket = "p"},
        {.backend = "a.b", .key = "c"},
        {.backend = "a", .key = "b.c"},
        {.key = all_bytes, .group = all_bytes, .backend_ticket = all_bytes},
        {.max_holders = std::numeric_limits<std::size_t>::max(), .ttl = std::chrono::milliseconds::max()},
    };
}

} // namespace

BOOST_AUTO_TEST_SUITE(tickets)

BOOST_AUTO_TEST_CASE(parsed_ticket_has_its_content)
{
    std::set<std::string> seen;
    for (const auto& each : examples()) {
        const auto ticket = to_ticket(each);
        BOOST_TEST(seen.insert(ticket).second);
        const auto parsed = parse_ticket(ticket);
        BOOST_TEST_REQUIRE(parsed.has_value());
        BOOST_TEST((*parsed == each));
    }
}

BOOST_AUTO_TEST_CASE(ticket_has_one_line_and_no_blanks)
{
    for (const auto& each : examples())
        BOOST_TEST(std::ranges::all_of(to_ticket(each), [](char one) { return one > ' ' && one <= '~'; }));
}

BOOST_AUTO_TEST_CASE(ticket_begins_with_the_version_of_the_format)
{
    auto ticket = to_ticket(examples()[1]);
    BOOST_TEST(ticket.starts_with("colock1."));
    ticket[6] = '2';
    BOOST_TEST(!parse_ticket(ticket));
}

BOOST_AUTO_TEST_CASE(ticket_has_one_canonical_form)
{
    for (const char* each :
        {"", "colock1", "colock1.......", "colock1.6d.6b..x.0.30000", "colock1.6d.6b..x.0.30000.00.",
            "colock1.6D.6b..x.0.30000.00", "colock1.6.6b..x.0.30000.00", "colock1.6d.6b..y.0.30000.00",
            "colock1.6d.6b..xx.0.30000.00", "colock1.6d.6b..x.00.30000.00", "colock1.6d.6b..x.-1.30000.00",
            "colock1.6d.6b..x.+1.30000.00", "colock1.6d.6b..x.0. 30000.00", "colock1.6d.6b..x.0.030000.00",
            "colock1.6d.6b..x.0.99999999999999999999.00", "colock1.6d.6b..x.0..00", "colock1.6d.6b..x..30000.00",
            " colock1.6d.6b..x.0.30000.00", "colock1.6d.6b..x.0.30000.00\n", "colock1.6d.6b..x.0.30000.0g"})
        BOOST_TEST(!parse_ticket(each), each);
    BOOST_TEST(parse_ticket("colock1.6d.6b..x.0.30000.00").has_value());
    BOOST_TEST(parse_ticket(to_ticket({.key = std::string(100'000, 'k'), .backend_ticket = std::string(16'384, 'p')}))
            .has_value());
    BOOST_TEST(!parse_ticket(to_ticket({.backend_ticket = std::string(16'385, 'p')})));
}

BOOST_AUTO_TEST_CASE(damaged_tickets_are_rejected)
{
    std::mt19937 random(1);
    for (const auto& each : examples()) {
        const auto ticket = to_ticket(each);
        for (std::size_t length = 0; length < ticket.size(); ++length) {
            // The adapter refuses a proof that is too short.
            const auto cut = parse_ticket(ticket.substr(0, length));
            BOOST_TEST((!cut || to_ticket(*cut) == ticket.substr(0, length)));
        }
        for (int round = 0; round < 2000; ++round) {
            auto damaged = ticket;
            damaged[random() % damaged.size()] = static_cast<char>(random());
            const auto parsed = parse_ticket(damaged);
            BOOST_TEST((!parsed || to_ticket(*parsed) == damaged));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
