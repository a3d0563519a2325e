// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace colock::mongo::detail {

struct settings;

/// The name of an array's element.
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

/// An update with a statement for each of some locks: one that fails does not keep the others from being carried out.
class batch_update
{
public:
    explicit batch_update(const settings& config);
    batch_update(const batch_update&) = delete;
    batch_update& operator=(const batch_update&) = delete;

    /// \param write of the statement's fields: `void(bson_t&)`
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
    /// Once; nothing is added after it.
    [[nodiscard]] document take();

private:
    const settings& config_;
    document made_;
    /// Within that.
    bson_t statements_;
    std::size_t size_ = 0;
};

} // namespace colock::mongo::detail
