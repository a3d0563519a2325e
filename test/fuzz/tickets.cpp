// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A ticket comes from another process. Only the text that to_ticket() has made is accepted.
#include "fuzz/fuzz.hpp"

#include "core/policy/ticket.hpp"

#include <algorithm>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace colock::detail;
    using colock::testing::require;

    const auto text = colock::testing::text_of(data, size);
    if (const auto content = parse_ticket(text))
        require(to_ticket(*content) == text, "an accepted ticket is the result of to_ticket");

    // The input as the content of a ticket.
    const auto half = text.size() / 2, quarter = text.size() / 4;
    ticket_content content{.backend = std::string(text.substr(0, quarter)),
        .key = std::string(text.substr(quarter, half - quarter)),
        .group = std::string(text.substr(half, quarter)),
        .ttl = std::chrono::milliseconds(text.size()),
        .backend_ticket = std::string(text.substr(half))};
    if (!text.empty() && text.front() % 2 == 0) {
        content.mode = colock::lock_mode::shared;
        content.max_holders = text.size();
    }
    const auto ticket = to_ticket(content);
    require(std::ranges::all_of(ticket, [](char each) { return each > ' ' && each <= '~'; }),
        "a ticket consists of printable characters");
    require(parse_ticket(ticket) == content, "a ticket contains what it was made from");
    return 0;
}
