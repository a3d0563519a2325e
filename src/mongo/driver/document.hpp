// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>
#include <string_view>

#include <bson/bson.h>

namespace colock::inline v0::mongo::detail {

/// A BSON document of the driver.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class document
{
public:
    /// Constructs an empty document.
    document() noexcept { bson_init(&held_); }
    document(document&& other) noexcept : document() { swap(other); }
    document& operator=(document&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~document() { bson_destroy(&held_); }

    /// Parses extended JSON, as the driver understands it.
    /// \throws std::invalid_argument with the reason, if the text cannot be parsed
    [[nodiscard]] static document from_json(std::string_view text);

    [[nodiscard]] bson_t* get() noexcept { return &held_; }
    [[nodiscard]] const bson_t* get() const noexcept { return &held_; }
    /// Returns storage for a function of the driver that initializes the document.
    [[nodiscard]] bson_t* overwrite() noexcept
    {
        bson_destroy(&held_);
        return &held_;
    }

    /// Returns the document as extended JSON, for messages and tests.
    [[nodiscard]] std::string to_json() const;

    void swap(document& other) noexcept;

private:
    bson_t held_;
};

} // namespace colock::inline v0::mongo::detail
