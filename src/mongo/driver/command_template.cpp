// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/command_template.hpp"

#include <boost/assert.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Returns whether the text is stored as a string. Text that is not UTF-8 is stored as binary.
bool is_text(std::string_view text)
{
    return text.empty() || bson_utf8_validate(text.data(), text.size(), false);
}

using value = command_template::value;

int length(std::string_view text)
{
    return static_cast<int>(text.size());
}

void append_text(bson_t& to, std::string_view name, std::string_view text)
{
    // The driver would append null for a text without an address.
    bson_append_utf8(&to, name.data(), length(name), text.empty() ? "" : text.data(), length(text));
}

/// Appends the value of a placeholder to a document.
struct append_value
{
    bson_t& to;
    std::string_view name;

    void operator()(std::int64_t number) const { bson_append_int64(&to, name.data(), length(name), number); }
    void operator()(std::string_view text) const { append_text(to, name, text); }
    void operator()(bytes key) const { append_bytes(to, name, key.text); }
    void operator()(date time) const { bson_append_date_time(&to, name.data(), length(name), time.milliseconds); }
    void operator()(array list) const { bson_append_array(&to, name.data(), length(name), list.fields->get()); }
    void operator()(const document* inside) const
    {
        bson_append_document(&to, name.data(), length(name), inside->get());
    }
};

} // namespace

/// Parses the text of a template into steps.
class command_template::parser
{
public:
    explicit parser(const document& text) : copied_(bson_get_data(text.get())) { read(copied_, text.get()->len); }

    [[nodiscard]] std::vector<step> take() { return std::move(steps_); }

private:
    /// Adds the steps of a document or an array.
    void read(const std::uint8_t* from, std::uint32_t size)
    {
        add(from, step::kind::begin);
        bson_iter_t each;
        bson_iter_init_from_data(&each, from, size);
        while (bson_iter_next(&each)) {
            const std::uint8_t* nested = nullptr;
            std::uint32_t length = 0;
            if (BSON_ITER_HOLDS_UTF8(&each)) {
                const char* const text = bson_iter_utf8(&each, &length);
                if (*text != '?')
                    continue;
                const char* const name = bson_iter_key(&each);
                constexpr std::size_t type_size = 1;
                add(at(name) - type_size, step::kind::placeholder, name, {text + 1, length - 1});
                copied_ = at(text) + length + 1;
            } else if (BSON_ITER_HOLDS_DOCUMENT(&each)) {
                bson_iter_document(&each, &length, &nested);
            } else if (BSON_ITER_HOLDS_ARRAY(&each)) {
                bson_iter_array(&each, &length, &nested);
            }
            // Without a '?', there is no placeholder inside.
            if (nested && std::memchr(nested, '?', length))
                read(nested, length);
        }
        add(from + size, step::kind::end);
    }
    void add(const std::uint8_t* until, step::kind type, std::string_view name = {}, std::string_view placeholder = {})
    {
        const auto* const begin = std::exchange(copied_, until);
        steps_.push_back({{begin, until}, type, std::string(name), std::string(placeholder)});
    }
    static const std::uint8_t* at(const char* text) { return reinterpret_cast<const std::uint8_t*>(text); }

    const std::uint8_t* copied_;
    std::vector<step> steps_;
};

command_template::command_template(std::string_view json) : steps_(parser(document::from_json(json)).take()) {}

document command_template::filled(values arguments) const
{
    document result;
    append_to(*result.get(), arguments);
    return result;
}

void command_template::append_to(bson_t& to, values arguments) const
{
    std::vector<std::uint8_t> buffer;
    buffer.reserve(4096); // most commands are shorter
    boost::container::small_vector<std::size_t, 32> open;
    // The bytes between placeholders are copied. Appending each field by the driver takes several times as long.
    for (const step& each : steps_) {
        buffer.insert(buffer.end(), each.text.begin(), each.text.end());
        if (each.type == step::kind::begin) {
            open.push_back(buffer.size());
        } else if (each.type == step::kind::end) {
            boost::endian::store_little_s32(
                buffer.data() + open.back(), static_cast<std::int32_t>(buffer.size() - open.back()));
            open.pop_back();
        } else {
            const auto* const found = std::ranges::find(arguments, each.placeholder, &value::name);
            BOOST_ASSERT_MSG(found != arguments.end(), "every placeholder needs a value");
            document field;
            std::visit(append_value{*field.get(), each.name}, found->data);
            // A document begins with its size, and ends with a zero.
            const auto* const bytes = bson_get_data(field.get());
            buffer.insert(buffer.end(), bytes + sizeof(std::int32_t), bytes + field.get()->len - 1);
        }
    }
    bson_t all;
    bson_init_static(&all, buffer.data(), buffer.size());
    bson_concat(&to, &all);
}

void append_bytes(bson_t& to, std::string_view name, std::string_view text)
{
    if (is_text(text))
        append_text(to, name, text);
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
