// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Users store the cursors of pages between calls, so any text may be passed as a cursor.
#include "fuzz/fuzz.hpp"

#include "mongo/commands/query.hpp"
#include "util/cursor.hpp"
#include "zookeeper/operations/page_start.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace {

using colock::testing::require;

void check_number(std::string_view text)
{
    const auto number = colock::detail::read_number(text);
    const auto is_digit = [](unsigned char each) { return std::isdigit(each) != 0; };
    if (!number)
        return;
    require(std::ranges::all_of(text, is_digit), "a number consists of digits");
    const auto digits = std::to_string(*number);
    require(text.ends_with(digits) && text.substr(0, text.size() - digits.size()).find_first_not_of('0') == text.npos,
        "a number is read as it was written");
}

void check_page_starts(std::string_view text)
{
    for (const std::size_t folders : {std::size_t{1}, colock::zookeeper::detail::page_start::bucket_count}) {
        const auto start = colock::zookeeper::detail::page_start::from(text, folders);
        require(!start || start->bucket < folders, "a page begins in a folder of the layout");
        require(!start || text.empty() || start->cursor() == text, "a cursor of ZooKeeper is read as it was written");
    }
    if (const auto start = colock::mongo::detail::page_start::from(text)) {
        require(text.empty() || start->cursor() == text, "a cursor of MongoDB is read as it was written");
        // The query contains the cursor.
        const auto query = colock::mongo::detail::expired_query(*start, 1'000);
        require(bson_validate(query.get(), BSON_VALIDATE_UTF8, nullptr), "the query of a page is valid BSON");
    }
}

/// Passes the text to the memory adapter.
void check_listing(std::string_view text)
{
    static boost::asio::io_context io;
    static const auto adapter = colock::memory::make_adapter(io.get_executor());
    for (const auto& cursor : {std::string(text), "memory:" + std::string(text)}) {
        bool has_ended = false;
        colock::detail::start_listing(*adapter, {.cursor = cursor}, [&](const colock::list_outcome& page) {
            has_ended = true;
            require(page.locks.empty(), "an empty store has no locks");
            require(page.error || page.next.empty() || page.next.starts_with("memory:"),
                "a cursor begins with the name of the backend");
            require(!page.error || page.error->code == colock::errc::invalid_options,
                "the code of a refused cursor is invalid_options");
        });
        require(has_ended, "the memory adapter answers at once");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto text = colock::testing::text_of(data, size);
    check_number(text);
    check_page_starts(text);
    check_listing(text);
    return 0;
}
