// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/command_template.hpp"

#include <boost/assert.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Returns whether the text is stored as a string. Text that is not UTF-8 is stored as binary.
bool is_text(std::string_view what)
{
    return bson_utf8_validate(what.data(), what.size(), false);
}

using value = command_template::value;

int length(std::string_view text)
{
    return static_cast<int>(text.size());
}

// These functions write BSON directly. With the driver's functions, a client spent half of its time on building the
// statements of locks.

template <class Number>
void add_number(std::string& to, Number which)
{
    which = boost::endian::native_to_little(which);
    to.append(reinterpret_cast<const char*>(&which), sizeof which);
}

void add_name(std::string& to, bson_type_t type, std::string_view name)
{
    ((to += static_cast<char>(type)) += name) += '\0';
}

void add_text(std::string& to, std::string_view name, std::string_view text)
{
    add_name(to, BSON_TYPE_UTF8, name);
    add_number(to, static_cast<std::int32_t>(text.size() + 1));
    (to += text) += '\0';
}

void add_nested(std::string& to, bson_type_t type, std::string_view name, const document& what)
{
    add_name(to, type, name);
    to.append(reinterpret_cast<const char*>(bson_get_data(what.get())), what.get()->len);
}

void add_value(std::string& to, std::string_view name, const value& given)
{
    const auto add = [&](const auto& what) {
        using type = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<type, std::int64_t>) {
            add_name(to, BSON_TYPE_INT64, name);
            add_number(to, what);
        } else if constexpr (std::is_same_v<type, std::string_view>) {
            add_text(to, name, what);
        } else if constexpr (std::is_same_v<type, bytes>) {
            if (is_text(what.text)) {
                add_text(to, name, what.text);
            } else {
                add_name(to, BSON_TYPE_BINARY, name);
                add_number(to, static_cast<std::int32_t>(what.text.size()));
                (to += static_cast<char>(BSON_SUBTYPE_BINARY)) += what.text;
            }
        } else if constexpr (std::is_same_v<type, date>) {
            add_name(to, BSON_TYPE_DATE_TIME, name);
            add_number(to, what.milliseconds);
        } else if constexpr (std::is_same_v<type, array>) {
            add_nested(to, BSON_TYPE_ARRAY, name, *what.fields);
        } else {
            add_nested(to, BSON_TYPE_DOCUMENT, name, *what);
        }
    };
    std::visit(add, given.data);
}

} // namespace

/// Parses the text of a template into steps.
class command_template::parser
{
public:
    explicit parser(const document& text) : text_(bson_get_data(text.get())) { read(text_, text.get()->len); }

    [[nodiscard]] std::vector<step> take() { return std::move(steps_); }

private:
    /// Adds the steps of a document or an array.
    /// \return whether it contains placeholders
    bool read(const std::uint8_t* from, std::uint32_t size)
    {
        bool has_placeholders = false;
        steps_.push_back({.what = step::kind::begin});
        const auto* copied = from + sizeof(std::int32_t);
        bson_iter_t each;
        bson_iter_init_from_data(&each, from, size);
        while (bson_iter_next(&each)) {
            std::uint32_t length = 0;
            if (BSON_ITER_HOLDS_UTF8(&each)) {
                const char* const text = bson_iter_utf8(&each, &length);
                if (*text != '?')
                    continue;
                const char* const name = bson_iter_key(&each);
                copy(copied, at(name) - 1);
                steps_.push_back({.what = step::kind::placeholder,
                    .from = offset(at(name)),
                    .size = bson_iter_key_len(&each),
                    .placeholder = offset(at(text)) + 1,
                    .placeholder_size = length - 1});
                copied = at(text) + length + 1;
                has_placeholders = true;
            } else if (BSON_ITER_HOLDS_DOCUMENT(&each) || BSON_ITER_HOLDS_ARRAY(&each)) {
                const std::uint8_t* nested = nullptr;
                if (BSON_ITER_HOLDS_ARRAY(&each))
                    bson_iter_array(&each, &length, &nested);
                else
                    bson_iter_document(&each, &length, &nested);
                const auto before = steps_.size();
                copy(copied, nested);
                if (read(nested, length)) {
                    copied = nested + length;
                    has_placeholders = true;
                } else {
                    steps_.resize(before);
                }
            }
        }
        copy(copied, from + size - 1);
        steps_.push_back({.what = step::kind::end});
        return has_placeholders;
    }
    void copy(const std::uint8_t* from, const std::uint8_t* to)
    {
        if (from != to)
            steps_.push_back(
                {.what = step::kind::copy, .from = offset(from), .size = static_cast<std::uint32_t>(to - from)});
    }
    [[nodiscard]] std::uint32_t offset(const std::uint8_t* of) const { return static_cast<std::uint32_t>(of - text_); }
    static const std::uint8_t* at(const char* text) { return reinterpret_cast<const std::uint8_t*>(text); }

    const std::uint8_t* const text_;
    std::vector<step> steps_;
};

command_template::command_template(std::string_view json)
    : text_(document::from_json(json)), steps_(parser(text_).take())
{
}

document command_template::filled(values with) const
{
    document made;
    append_to(*made.get(), with);
    return made;
}

void command_template::append_to(bson_t& to, values with) const
{
    const auto* const text = reinterpret_cast<const char*>(bson_get_data(text_.get()));
    std::string made;
    made.reserve(text_.get()->len * std::size_t{2});
    boost::container::small_vector<std::size_t, 32> open_sizes;
    for (const step& each : steps_) {
        switch (each.what) {
        case step::kind::copy:
            made.append(text + each.from, each.size);
            break;
        case step::kind::begin:
            open_sizes.push_back(made.size());
            add_number(made, std::int32_t{0});
            break;
        case step::kind::end: {
            made += '\0';
            const auto size =
                boost::endian::native_to_little(static_cast<std::int32_t>(made.size() - open_sizes.back()));
            std::memcpy(made.data() + open_sizes.back(), &size, sizeof size);
            open_sizes.pop_back();
            break;
        }
        case step::kind::placeholder: {
            const auto found =
                std::ranges::find(with, std::string_view(text + each.placeholder, each.placeholder_size), &value::name);
            BOOST_ASSERT_MSG(found != with.end(), "every placeholder needs a value");
            add_value(made, {text + each.from, each.size}, *found);
            break;
        }
        }
    }
    bson_t all;
    bson_init_static(&all, reinterpret_cast<const std::uint8_t*>(made.data()), made.size());
    bson_concat(&to, &all);
}

void append_bytes(bson_t& to, std::string_view name, std::string_view text)
{
    if (is_text(text))
        bson_append_utf8(&to, name.data(), length(name), text.data(), length(text));
    else
        bson_append_binary(&to, name.data(), length(name), BSON_SUBTYPE_BINARY,
            reinterpret_cast<const std::uint8_t*>(text.data()), static_cast<std::uint32_t>(text.size()));
}

std::string read_bytes(const bson_iter_t& from)
{
    std::uint32_t size = 0;
    if (BSON_ITER_HOLDS_UTF8(&from)) {
        const char* const text = bson_iter_utf8(&from, &size);
        return {text, size};
    }
    if (BSON_ITER_HOLDS_BINARY(&from)) {
        const std::uint8_t* data = nullptr;
        bson_iter_binary(&from, nullptr, &size, &data);
        return {reinterpret_cast<const char*>(data), size};
    }
    return {};
}

} // namespace colock::inline v0::mongo::detail
