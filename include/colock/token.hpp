// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace colock::inline v0 {

/// The secret that proves the ownership of a lock: 128 bits from the random number generator of the operating system,
/// never reused. Not the fencing token, which is lock::fence().
///
/// One token is generated per acquire and used for all its attempts, so that a repeated request finds its own grant.
/// There is deliberately no stream operator, because tokens must not be logged.
///
/// Thread safety: distinct objects: safe. Shared objects: safe for const use.
class COLOCK_EXPORT token
{
public:
    /// Number of bytes.
    static constexpr std::size_t size = 16;
    /// The bytes of a token.
    using bytes_type = std::array<unsigned char, size>;

    /// Makes the empty token: all bytes are zero. It is never generated.
    constexpr token() noexcept = default;
    /// Makes a token from its bytes.
    explicit constexpr token(const bytes_type& bytes) noexcept : bytes_(bytes) {}

    /// Generates a new token. Random bytes are read with `getrandom` in blocks, one block per thread. A block is
    /// discarded after a fork.
    /// \throws boost::system::system_error if the operating system cannot provide random bytes.
    [[nodiscard]] static token generate();

    /// Returns 32 lower-case hexadecimal digits.
    [[nodiscard]] std::string hex() const;
    /// Writes the 32 digits to `out`, without a terminating NUL.
    void hex_to(char* out) const noexcept;

    /// Returns the bytes.
    [[nodiscard]] constexpr const bytes_type& bytes() const noexcept { return bytes_; }
    /// Returns whether this is the empty token.
    [[nodiscard]] constexpr bool empty() const noexcept { return bytes_ == bytes_type{}; }
    friend constexpr bool operator==(const token&, const token&) noexcept = default;

private:
    bytes_type bytes_{};
};

} // namespace colock::inline v0
