// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/document.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace colock::inline v0::mongo::detail {

document document::from_json(std::string_view text)
{
    document result;
    bson_error_t error;
    if (!bson_init_from_json(result.overwrite(), text.data(), static_cast<ssize_t>(text.size()), &error)) {
        bson_init(result.get());
        throw std::invalid_argument(error.message);
    }
    return result;
}

std::string document::to_json() const
{
    const std::unique_ptr<char, decltype(&bson_free)> text(bson_as_relaxed_extended_json(&held_, nullptr), &bson_free);
    return text.get();
}

void document::swap(document& other) noexcept
{
    bson_t kept;
    bson_steal(&kept, &held_);
    bson_steal(&held_, &other.held_);
    bson_steal(&other.held_, &kept);
}

} // namespace colock::inline v0::mongo::detail
