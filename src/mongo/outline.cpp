// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/outline.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <span>
#include <type_traits>

namespace colock::mongo::detail {

namespace {

using value = outline::value;

int length(std::string_view text)
{
    return static_cast<int>(text.size());
}

void append_value(bson_t& to, std::string_view name, const value& given)
{
    const auto append = [&](const auto& what) {
        using type = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<type, std::int64_t>)
            bson_append_int64(&to, name.data(), length(name), what);
        else if constexpr (std::is_same_v<type, std::string_view>)
            bson_append_utf8(&to, name.data(), length(name), what.data(), length(what));
        else if constexpr (std::is_same_v<type, bytes>)
            append_bytes(to, name, what.text);
        else if constexpr (std::is_same_v<type, date>)
            bson_append_date_time(&to, name.data(), length(name), what.milliseconds);
        else
            bson_append_document(&to, name.data(), length(name), what->get());
    };
    std::visit(append, given.is);
}

void copy(bson_iter_t& from, bson_t& to, std::span<const value> with)
{
    while (bson_iter_next(&from)) {
        const std::string_view name(bson_iter_key(&from), bson_iter_key_len(&from));
        const auto type = bson_iter_type(&from);
        if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY) {
            const bool is_array = type == BSON_TYPE_ARRAY;
            bson_t below;
            bson_iter_t inside;
            bson_iter_recurse(&from, &inside);
            if (is_array)
                bson_append_array_begin(&to, name.data(), length(name), &below);
            else
                bson_append_document_begin(&to, name.data(), length(name), &below);
            copy(inside, below, with);
            if (is_array)
                bson_append_array_end(&to, &below);
            else
                bson_append_document_end(&to, &below);
            continue;
        }
        std::uint32_t size = 0;
        const char* const text = type == BSON_TYPE_UTF8 ? bson_iter_utf8(&from, &size) : "";
        if (*text != '?') {
            bson_append_iter(&to, name.data(), length(name), &from);
            continue;
        }
        const std::string_view gap(text + 1, size - 1);
        const auto found = std::ranges::find(with, gap, &value::name);
        BOOST_ASSERT_MSG(found != with.end(), "every gap has its value");
        append_value(to, name, *found);
    }
}

} // namespace

document outline::filled(values with) const
{
    document made;
    append_to(*made.get(), with);
    return made;
}

void outline::append_to(bson_t& to, values with) const
{
    bson_iter_t all;
    bson_iter_init(&all, text_.get());
    copy(all, to, std::span(with.begin(), with.size()));
}

void append_bytes(bson_t& to, std::string_view name, std::string_view text)
{
    if (bson_utf8_validate(text.data(), text.size(), false))
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

} // namespace colock::mongo::detail
