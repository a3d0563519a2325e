// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/argument.hpp"
#include "redis/settings.hpp"

#include <colock/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace colock::redis::detail {

/// What a key is called on the server.
struct key_name
{
    std::string_view prefix;
    std::string_view key;

    [[nodiscard]] std::size_t size() const noexcept { return prefix.size() + key.size(); }
    void append_to(std::string& to) const { (to += prefix) += key; }
    [[nodiscard]] std::string text() const;
};

[[nodiscard]] inline key_name lock_key(const settings& config, std::string_view key) noexcept
{
    return {config.prefix, key};
}

/// Where a writer that waits for readers says so.
[[nodiscard]] inline key_name intent_key(const settings& config, std::string_view key) noexcept
{
    return {config.intent_prefix, key};
}

/// Whether an index of its group is kept, and what that is called. Another layout keeps no groups.
[[nodiscard]] inline bool is_grouped(const settings& config, const claim& of) noexcept
{
    return !config.plain() && !of.owner().group.empty();
}
[[nodiscard]] inline key_name group_key(const settings& config, std::string_view id) noexcept
{
    return {config.group_prefix, id};
}

/// A claim's token, in hexadecimal.
class token_text
{
public:
    explicit token_text(const claim& of) : token_(of.token()) {}

    [[nodiscard]] static constexpr std::size_t size() noexcept { return 2 * token::size; }
    void append_to(std::string& to) const;

private:
    const token& token_;
};

/// What is stored for a claim: its token, and in the standard layout what people may want to know. A letter that no
/// token starts with tells a reader from a writer.
class stored_value
{
public:
    stored_value(const settings& config, const claim& of);

    [[nodiscard]] std::size_t size() const noexcept;
    void append_to(std::string& to) const;

private:
    const claim& claim_;
    /// Of the standard layout.
    bool with_owner_;
    std::int64_t created_ = 0;
};

} // namespace colock::redis::detail
