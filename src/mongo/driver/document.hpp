// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>
#include <string_view>

#include <bson/bson.h>

namespace colock::mongo::detail {

/// A document in the driver's form.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class document
{
public:
    /// Empty.
    document() noexcept { bson_init(&held_); }
    document(document&& other) noexcept : document() { swap(other); }
    document& operator=(document&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~document() { bson_destroy(&held_); }

    /// Extended JSON, as the driver reads it.
    /// \throws std::invalid_argument with what is wrong
    [[nodiscard]] static document from_json(std::string_view text);

    [[nodiscard]] bson_t* get() noexcept { return &held_; }
    [[nodiscard]] const bson_t* get() const noexcept { return &held_; }
    /// For a call of the driver's that makes a document where there is none.
    [[nodiscard]] bson_t* overwrite() noexcept
    {
        bson_destroy(&held_);
        return &held_;
    }

    /// As extended JSON: for messages and tests.
    [[nodiscard]] std::string to_json() const;

    void swap(document& other) noexcept;

private:
    bson_t held_;
};

} // namespace colock::mongo::detail
