// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/argument.hpp"
#include "redis/settings.hpp"

#include <colock/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// Name of a key on the server.
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

/// Tells whether the claim is entered into the index of a group. The plain layout has no groups.
[[nodiscard]] inline bool is_grouped(const settings& config, const claim& claim) noexcept
{
    return !config.plain() && !claim.owner().group.empty();
}
/// Tells whether the scripts about the lock of the claim also maintain the index of its group.
[[nodiscard]] inline bool writes_index(const settings& config, const claim& claim) noexcept
{
    return is_grouped(config, claim) && !config.cluster();
}
/// Tells whether separate requests maintain the index. In a cluster, the index and the lock may be on different
/// masters.
[[nodiscard]] inline bool has_separate_index(const settings& config, const claim& claim) noexcept
{
    return is_grouped(config, claim) && config.cluster();
}
/// Tells whether the scripts about the lock of the claim use a sorted set.
[[nodiscard]] inline bool needs_sorted_sets(const settings& config, const claim& claim) noexcept
{
    return writes_index(config, claim) || (!config.plain() && claim.mode() == lock_mode::shared);
}
[[nodiscard]] inline key_name group_key(const settings& config, std::string_view id) noexcept
{
    return {config.group_prefix, id};
}

/// Token of a claim, in hexadecimal.
class token_text
{
public:
    explicit token_text(const claim& claim) : token_(claim.token()) {}

    [[nodiscard]] static constexpr std::size_t size() noexcept { return 2 * token::size; }
    void append_to(std::string& to) const;

private:
    const token& token_;
};

/// Value that is stored for a claim: its token, and in the standard layout the description of its owner. The value of a
/// reader begins with the letter `s`, which no token contains.
class stored_value
{
public:
    stored_value(const settings& config, const claim& claim);

    [[nodiscard]] std::size_t size() const noexcept;
    void append_to(std::string& to) const;

private:
    const claim& claim_;
    /// True in the standard layout.
    bool with_owner_;
    std::int64_t created_ = 0;
};

} // namespace colock::inline v0::redis::detail
