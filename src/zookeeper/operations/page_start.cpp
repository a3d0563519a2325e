// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/page_start.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

constexpr std::string_view bucket_digits = "0123456789abcdef";

} // namespace

std::string page_start::name_of(std::size_t bucket)
{
    return {bucket_digits[bucket / bucket_digits.size()], bucket_digits[bucket % bucket_digits.size()]};
}

std::string page_start::cursor() const
{
    return name_of(bucket) + after;
}

std::optional<page_start> page_start::from(std::string_view cursor, std::size_t folders)
{
    if (cursor.empty())
        return page_start{};
    if (cursor.size() < 2)
        return std::nullopt;
    const auto high = bucket_digits.find(cursor[0]), low = bucket_digits.find(cursor[1]);
    if (high == bucket_digits.npos || low == bucket_digits.npos)
        return std::nullopt;
    page_start start{high * bucket_digits.size() + low, std::string(cursor.substr(2))};
    return start.bucket < folders ? std::optional(std::move(start)) : std::nullopt;
}

} // namespace colock::inline v0::zookeeper::detail
