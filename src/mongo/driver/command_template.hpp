// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace colock::inline v0::mongo::detail {

/// Text that is stored unchanged: as a string if it is UTF-8, otherwise as binary.
struct bytes
{
    std::string_view text;
};

/// A date, in milliseconds since the Unix epoch.
struct date
{
    std::int64_t milliseconds;
};

/// A document that is written as an array. Its field names must be the numbers from 0.
struct array
{
    const document* fields;
};

/// A command with placeholders. It is parsed once, and filled for each use.
///
/// Thread safety: safe after construction.
class command_template
{
public:
    struct value
    {
        /// Name of the placeholder, without its '?'.
        std::string_view name;
        std::variant<std::int64_t, std::string_view, bytes, date, array, const document*> data;
    };
    using values = std::initializer_list<value>;

    /// \param json extended JSON, in which a placeholder is a string that begins with '?'
    explicit command_template(std::string_view json);

    /// Returns the filled command. Every placeholder needs a value in `arguments`.
    [[nodiscard]] document filled(values arguments) const;
    /// Fills the command, and appends its fields to `to`.
    void append_to(bson_t& to, values arguments) const;

private:
    class parser;
    struct step
    {
        enum class kind : unsigned char
        {
            /// Start of a document or an array. Its size comes first, and is corrected by `end`.
            begin,
            end,
            placeholder,
        };
        /// Bytes in front of the start, the end or the placeholder.
        std::vector<std::uint8_t> text;
        kind type;
        /// Name of the field whose value is a placeholder.
        std::string name;
        std::string placeholder;
    };

    std::vector<step> steps_;
};

/// Appends one field: a string if `text` is UTF-8, otherwise binary.
void append_bytes(bson_t& to, std::string_view name, std::string_view text);
/// Returns the text that `append_bytes` wrote. Empty for a value of another type.
[[nodiscard]] std::string read_bytes(const bson_iter_t& from);

} // namespace colock::inline v0::mongo::detail
