// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/slot.hpp"

#include <boost/crc.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace colock::inline v0::redis::detail {

std::string_view hash_tag(std::string_view key) noexcept
{
    const auto opens = key.find('{');
    if (opens == key.npos)
        return {};
    const auto closes = key.find('}', opens);
    return closes == key.npos ? std::string_view() : key.substr(opens + 1, closes - opens - 1);
}

slot_number slot_of(std::string_view key) noexcept
{
    const auto tag = hash_tag(key);
    const auto hashed = tag.empty() ? key : tag;
    boost::crc_xmodem_t sum;
    sum.process_bytes(hashed.data(), hashed.size());
    return sum.checksum() % slot_count;
}

namespace {

std::string_view digits_of(std::uint32_t number, std::array<char, 10>& buffer) noexcept
{
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

std::array<std::uint32_t, slot_count> find_tags()
{
    constexpr auto unknown = ~std::uint32_t{0};
    std::array<std::uint32_t, slot_count> tags{};
    tags.fill(unknown);
    std::array<char, 10> buffer{};
    // All slots have a tag below 110,000.
    for (std::uint32_t number = 0, found = 0; found < slot_count; ++number) {
        auto& tag = tags[slot_of(digits_of(number, buffer))];
        if (tag != unknown)
            continue;
        tag = number;
        ++found;
    }
    return tags;
}

} // namespace

std::string tag_of(slot_number slot)
{
    static const auto tags = find_tags();
    std::array<char, 10> buffer{};
    return std::string(digits_of(tags[slot], buffer));
}

} // namespace colock::inline v0::redis::detail
