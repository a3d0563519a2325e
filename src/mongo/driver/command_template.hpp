// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace colock::mongo::detail {

/// Text that a server stores as it is, UTF-8 or not.
struct bytes
{
    std::string_view text;
};

/// A date, in milliseconds.
struct date
{
    std::int64_t milliseconds;
};

/// A document that is written as an array: its names are the numbers from 0.
struct array
{
    const document* of;
};

/// A command with gaps: read once, filled for each use.
///
/// Thread safety: safe, once it was made.
class command_template
{
public:
    struct value
    {
        /// Of the gap, without its '?'.
        std::string_view name;
        std::variant<std::int64_t, std::string_view, bytes, date, array, const document*> is;
    };
    using values = std::initializer_list<value>;

    /// \param json where a gap is a text that begins with '?'
    explicit command_template(std::string_view json);

    /// Every gap needs its value.
    [[nodiscard]] document filled(values with) const;
    /// The same, behind what `to` has.
    void append_to(bson_t& to, values with) const;

private:
    class reader;
    struct step
    {
        enum class kind : unsigned char
        {
            copy,
            /// Of a document or an array that has gaps: its size comes first.
            begin,
            end,
            gap,
        };
        kind what;
        /// Within the text: what is copied, or the name of the element that is a gap.
        std::uint32_t from = 0;
        std::uint32_t size = 0;
        /// What fills it.
        std::uint32_t gap = 0;
        std::uint32_t gap_size = 0;
    };

    document text_;
    std::vector<step> steps_;
};

/// One element, of the type that the text needs: what is not UTF-8 is binary.
void append_bytes(bson_t& to, std::string_view name, std::string_view text);
/// What `append_bytes` has written; empty for anything else.
[[nodiscard]] std::string read_bytes(const bson_iter_t& from);

} // namespace colock::mongo::detail
