// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace colock {

/// The secret that proves who holds a lock: 128 bits from the operating system's generator, never reused.
///
/// One token is made per acquisition and kept over all its attempts, so that a repeated request finds its own grant.
/// There is deliberately no stream operator: tokens do not belong in logs.
///
/// Thread safety: distinct objects: safe. Shared objects: safe for const use.
class token
{
public:
    static constexpr std::size_t size = 16;
    using bytes_type = std::array<unsigned char, size>;

    /// The empty token: all zero, never generated.
    constexpr token() noexcept = default;
    explicit constexpr token(const bytes_type& bytes) noexcept : bytes_(bytes) {}

    /// A new token. Random bytes are taken from `getrandom` in blocks, per thread; a block never survives a fork.
    /// \throws boost::system::system_error if the operating system has no randomness to give.
    [[nodiscard]] static token generate();

    /// 32 lower-case hexadecimal digits.
    [[nodiscard]] std::string hex() const;
    /// Writes the 32 digits to `out`, without a terminating zero.
    void hex_to(char* out) const noexcept;

    [[nodiscard]] constexpr const bytes_type& bytes() const noexcept { return bytes_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return bytes_ == bytes_type{}; }
    friend constexpr bool operator==(const token&, const token&) noexcept = default;

private:
    bytes_type bytes_{};
};

} // namespace colock
