// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/cursor.hpp"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::detail {

namespace {

/// Maximum size of a cursor in bytes. Sufficient for a cursor that contains an encoded key.
constexpr std::size_t max_cursor_size = 4096;

} // namespace

void start_listing(adapter& backend, listing_request request, completion<list_outcome> done)
{
    const auto prefix = std::string(backend.traits().name) + ':';
    auto& cursor = request.cursor;
    if (!cursor.empty()) {
        if (request.filter.key || cursor.size() > max_cursor_size || cursor.size() == prefix.size() ||
            !cursor.starts_with(prefix))
        {
            done({.error = not_a_cursor(backend.traits().name)});
            return;
        }
        cursor.erase(0, prefix.size());
    }
    auto finish = [prefix, which = request.filter, done = std::move(done)](list_outcome outcome) mutable {
        std::erase_if(outcome.locks, [&](const lock_status& each) { return !which.matches(each); });
        if (!outcome.next.empty())
            outcome.next.insert(0, prefix);
        done(std::move(outcome));
    };
    backend.start_listing(std::move(request), std::move(finish));
}

failure_ptr not_a_cursor(std::string_view backend)
{
    return make_failure(errc::invalid_options, "the cursor is not from a page of " + std::string(backend) +
                                                   "; pass the next of the previous page, or an empty cursor");
}

std::optional<std::uint64_t> read_number(std::string_view text, int base)
{
    std::uint64_t number = 0;
    const auto* const last = text.data() + text.size();
    const auto [end, problem] = std::from_chars(text.data(), last, number, base);
    return problem == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

} // namespace colock::inline v0::detail
