// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Where a page begins: the bucket, and the name in this bucket after which it begins.
struct page_start
{
    std::size_t bucket = 0;
    std::string after{};

    static constexpr std::size_t bucket_count = 256;
    [[nodiscard]] static std::string name_of(std::size_t bucket);

    [[nodiscard]] std::string cursor() const;
    /// \param cursor a text that `cursor` has returned; empty: the first page
    /// \param folders number of folders of the layout
    /// \return nullopt if the cursor is not valid
    [[nodiscard]] static std::optional<page_start> from(std::string_view cursor, std::size_t folders);
};

} // namespace colock::inline v0::zookeeper::detail
