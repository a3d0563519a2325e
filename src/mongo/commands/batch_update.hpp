// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace colock::inline v0::mongo::detail {

struct settings;

/// Field name of an array element: its index in decimal.
class index_name
{
public:
    explicit index_name(std::size_t index) noexcept
    {
        size_ = bson_uint32_to_string(static_cast<std::uint32_t>(index), &text_, room_.data(), room_.size());
    }
    [[nodiscard]] const char* text() const noexcept { return text_; }
    [[nodiscard]] int size() const noexcept { return static_cast<int>(size_); }

private:
    std::array<char, 16> room_{};
    const char* text_ = nullptr;
    std::size_t size_ = 0;
};

/// Builds an `update` command with one statement for each lock. A statement that fails does not prevent the others.
class batch_update
{
public:
    explicit batch_update(const settings& config);
    batch_update(const batch_update&) = delete;
    batch_update& operator=(const batch_update&) = delete;

    /// \param write function that appends the fields of the statement: `void(bson_t&)`
    template <class Write>
    void add(Write write)
    {
        const index_name name(size_++);
        bson_t one;
        bson_append_document_begin(&statements_, name.text(), name.size(), &one);
        write(one);
        bson_append_document_end(&statements_, &one);
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Returns the command. May be called once, after the last `add`.
    [[nodiscard]] document take();

private:
    const settings& config_;
    document command_;
    /// The array of statements in `command_`.
    bson_t statements_;
    std::size_t size_ = 0;
};

} // namespace colock::inline v0::mongo::detail
